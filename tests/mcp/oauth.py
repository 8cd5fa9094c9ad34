"""The official Python client signs in by OAuth: discovery, registration, consent, refresh, revocation.

The person is a small browser: it signs in with a key, reads the consent page and presses a button."""

import asyncio
import contextlib
import html
import json
import re
import urllib.error
import urllib.parse
import urllib.request

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from server import KEY, data_directory, served

CALLBACK = "http://127.0.0.1:41999/callback"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Person:
    def __init__(self, address):
        self.address = address
        self.opener = urllib.request.build_opener(NoRedirect)
        self.cookie = ""
        reply = self.send("/ui/sign-in", key=KEY, name="ada")
        assert reply.status == 303, reply.read()
        self.cookie = reply.headers["set-cookie"].split(";")[0]

    def send(self, path, **fields):
        data = urllib.parse.urlencode(fields, doseq=True).encode() if fields else None
        headers = {"sec-fetch-site": "same-origin", "cookie": self.cookie}
        request = urllib.request.Request(self.address + path, data=data, headers=headers)
        try:
            return self.opener.open(request, timeout=60)
        except urllib.error.HTTPError as answer:
            return answer

    def decide(self, url, **choices):
        """Opens the page that a host leads to, and returns where the decision leads."""
        page = self.send(url.removeprefix(self.address))
        text = page.read().decode()
        assert page.status == 200, text
        assert "http://127.0.0.1:41999" in page.headers["content-security-policy"]
        hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text)
        fields = {name: html.unescape(value) for name, value in hidden}
        fields |= {"role": "read_write", "days": "30", "decision": "allow"} | choices
        answer = self.send("/ui/authorize", **fields)
        assert answer.status == 303, answer.read()
        return answer.headers["location"]


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def provider(address, person, storage, **choices):
    answer = {}

    async def redirected(url):
        location = await asyncio.to_thread(person.decide, url, **choices)
        assert location.startswith(CALLBACK), location
        answer.update(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))

    async def called_back():
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer["state"], iss=answer.get("iss"))

    metadata = OAuthClientMetadata(client_name="A <b>host</b>", redirect_uris=[CALLBACK])
    return OAuthClientProvider(f"{address}/mcp", metadata, storage, redirected, called_back)


@contextlib.asynccontextmanager
async def connected(address, auth):
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client:
            yield client


async def written(address, auth):
    async with connected(address, auth) as client:
        note = {"title": "Tea", "content": "green", "directory": "drinks", "overwrite": True}
        result = await client.call_tool("write_note", note)
        assert not result.is_error, result


def post(address, path, **fields):
    data = urllib.parse.urlencode(fields).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, data=data), timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as answer:
        return answer.status, json.loads(answer.read())


async def flow():
    with data_directory() as data, served(data) as address:
        person, storage = Person(address), Storage()
        await written(address, provider(address, person, storage))
        first = storage.tokens
        assert first.token_type == "Bearer" and first.expires_in <= 3600 and first.refresh_token

        # A refresh token works once, for its own client only; the client uses it by itself when asked to.
        mine = {"grant_type": "refresh_token", "client_id": storage.client.client_id}
        status, answer = post(address, "/oauth/token", **mine | {"client_id": "e30"}, refresh_token=first.refresh_token)
        assert (status, answer["error"]) == (400, "invalid_grant"), answer
        status, renewed = post(address, "/oauth/token", **mine, refresh_token=first.refresh_token)
        assert status == 200 and renewed["refresh_token"] != first.refresh_token, renewed
        # Presented again it was stolen: everything that came of it ends.
        status, answer = post(address, "/oauth/token", **mine, refresh_token=first.refresh_token)
        assert (status, answer["error"]) == (400, "invalid_grant"), answer
        status, answer = post(address, "/oauth/token", **mine, refresh_token=renewed["refresh_token"])
        assert (status, answer["error"]) == (400, "invalid_grant"), answer

        # The client notices, and asks the person again.
        await written(address, provider(address, person, storage))
        assert storage.tokens.access_token != first.access_token

        # Revoked by the host, the token opens nothing.
        status, _ = post(address, "/oauth/revoke", token=storage.tokens.refresh_token)
        assert status == 200
        request = urllib.request.Request(f"{address}/mcp", data=b"{}", headers={"authorization": f"Bearer {storage.tokens.access_token}"})
        try:
            urllib.request.urlopen(request, timeout=60)
            raise AssertionError("a revoked token works")
        except urllib.error.HTTPError as refused:
            assert refused.status == 401
            assert "resource_metadata=" in refused.headers["www-authenticate"]


async def read_only():
    """What the person chooses is what the host may do."""
    with data_directory() as data, served(data) as address:
        person, storage = Person(address), Storage()
        async with connected(address, provider(address, person, storage, role="read_only")) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
        assert "search_notes" in names and "write_note" not in names, names


async def denied():
    with data_directory() as data, served(data) as address:
        person, storage = Person(address), Storage()
        try:
            await written(address, provider(address, person, storage, decision="deny"))
        except BaseException:  # the client wraps it in groups
            assert storage.tokens is None
            return
        raise AssertionError("the client got in")


for test in [flow, read_only, denied]:
    asyncio.run(test())
    print(f"python client, oauth, {test.__name__.replace('_', ' ')}: ok")
