//! `openapi.json`: complete, consistent, and true of what the server answers.

#[path = "openapi/answers.rs"]
mod answers;
#[path = "openapi/document.rs"]
mod document;
#[path = "openapi/empty.rs"]
mod empty;

use std::collections::BTreeSet;

use document::{Document, list, object};
use quipu_server::routes;
use serde_json::{Value, json};

#[test]
fn the_check_finds_what_breaks_a_schema() {
    let document = Document::load();
    let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let good = json!({"path": "/a", "type": "memory_prefix"});
    for (name, wrong) in [
        ("MemoryPrefix", good),
        ("MemoryPrefix", json!({"type": "memory_prefix"})),
        ("MemoryPrefix", json!({"path": "/a/", "type": "memory"})),
        ("MemoryPrefix", json!({"path": "/a/", "type": "memory_prefix", "x": 1})),
        ("MemoryList", json!({"data": [{"type": "memory"}], "next_page": null})),
        ("MemoryList", json!({"data": [], "next_page": 1})),
        ("Metadata", json!({"": "x"})),
        ("Metadata", json!({"x": "y".repeat(513)})),
        ("Policy", json!({"secrets": "maybe", "expire_after_days": null})),
        ("Policy", json!({"secrets": "off", "expire_after_days": 0})),
        ("Name", json!("")),
        ("Name", json!("a\nb")),
    ] {
        assert_ne!(document.problems(&schema(name), &wrong), [""; 0], "{name} {wrong}");
    }
}

#[test]
fn every_route_is_documented_and_nothing_else() {
    let document = Document::load();
    let documented: BTreeSet<_> = document
        .operations()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    let registered: BTreeSet<_> =
        routes().iter().map(|(method, path)| format!("{method} {path}")).collect();
    assert_eq!(documented, registered);
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = Document::load();
    let mut used = BTreeSet::new();
    document.each_object(&mut |fields| {
        if let Some(Value::String(reference)) = fields.get("$ref") {
            assert!(document.target(reference).is_some(), "{reference} leads nowhere");
            used.insert(reference.clone());
        }
    });
    // No operation answers so: it is for methods that a path does not have.
    used.insert("#/components/responses/MethodNotAllowed".to_owned());
    // The schema of the data inside a stream.
    used.insert("#/components/schemas/Change".to_owned());
    for (kind, components) in object(&document.root()["components"]) {
        for name in object(components).keys().filter(|_| kind != "securitySchemes") {
            assert!(used.contains(&format!("#/components/{kind}/{name}")), "{kind}/{name}");
        }
    }
}

#[test]
fn operations_have_names_of_their_own_and_links_lead_to_them() {
    let document = Document::load();
    let mut names = BTreeSet::new();
    for operation in document.operations() {
        let name = operation.fields["operationId"].as_str().expect("a name").to_owned();
        assert!(names.insert(name.clone()), "{name} is there twice");
        for field in ["summary", "description"] {
            let text = operation.fields[field].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name} has no {field}");
        }
    }
    for (name, link) in object(&document.root()["components"]["links"]) {
        assert!(names.contains(link["operationId"].as_str().expect("a name")), "{name}");
    }
}

#[test]
fn every_parameter_of_a_path_is_described() {
    let document = Document::load();
    for (path, item) in object(&document.root()["paths"]) {
        let inside: BTreeSet<_> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = item.get("parameters").map_or(&[][..], list);
        let described: BTreeSet<_> = parameters
            .iter()
            .map(|parameter| document.resolve(parameter))
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(inside, described, "{path}");
    }
}

#[test]
fn every_example_matches_its_schema() {
    let document = Document::load();
    let mut count = 0;
    let mut check = |schema: &Value, example: &Value| {
        assert_eq!(document.problems(schema, example), [""; 0]);
        count += 1;
    };
    document.each_object(&mut |fields| {
        if let (Some(schema), Some(example)) = (fields.get("schema"), fields.get("example")) {
            check(schema, example);
        }
        if let Some(Value::Array(examples)) = fields.get("examples") {
            let schema = Value::Object(fields.clone());
            for example in examples {
                check(&schema, example);
            }
        }
    });
    assert!(count > 40, "only {count} examples");
}

#[test]
fn errors_are_those_of_the_documentation() {
    let text = include_str!("../../../../docs/errors.md");
    let mut listed = BTreeSet::new();
    for cell in text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|')) {
        let Some((status, kind)) = cell.trim().split_once(' ') else { continue };
        let kind = kind.strip_prefix('`').and_then(|kind| kind.strip_suffix('`'));
        if let (Ok(status), Some(kind)) = (status.parse::<u16>(), kind) {
            listed.insert((status, kind.to_owned()));
        }
    }
    let document = Document::load();
    let mut documented = BTreeSet::new();
    for operation in document.operations() {
        for (status, response) in object(&operation.fields["responses"]) {
            let status: u16 = status.parse().expect("a status");
            if status >= 400 {
                let kinds = error_types(document.resolve(response));
                documented.extend(kinds.into_iter().map(|kind| (status, kind)));
            }
        }
    }
    let no_method = &document.root()["components"]["responses"]["MethodNotAllowed"];
    documented.extend(error_types(no_method).into_iter().map(|kind| (405, kind)));
    assert_eq!(documented, listed);
}

/// Returns the error types that an answer can have.
fn error_types(response: &Value) -> Vec<String> {
    let schema = &response["content"]["application/json"]["schema"];
    let rule = &schema["allOf"][1]["properties"]["error"]["properties"]["type"];
    let texts = match rule.get("enum") {
        Some(texts) => list(texts).to_vec(),
        None => vec![rule["const"].clone()],
    };
    texts.iter().map(|text| text.as_str().expect("a type").to_owned()).collect()
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let reply = crate::rest::server().get("/quipu/docs").await;
    let policy = reply.headers["content-security-policy"].to_str().expect("a text");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("47DEQpj8HBSa"), "{policy}");
    let page = reply.body.as_str().expect("a page");
    for tag in ["script", "style"] {
        assert_eq!(page.matches(&format!("<{tag}")).count(), 1, "the policy knows one {tag}");
    }
    for foreign in ["http:", "https:", " src=", " url(", "@import", " style=", "innerHTML"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn the_surface_changes_only_on_purpose() {
    let document = Document::load();
    let mut lines = String::new();
    for operation in document.operations() {
        let fields = operation.fields;
        let statuses: Vec<_> = object(&fields["responses"]).keys().map(String::as_str).collect();
        let mut parameters: Vec<&str> =
            [document.root()["paths"][operation.path].get("parameters")]
                .into_iter()
                .chain([fields.get("parameters")])
                .flatten()
                .flat_map(list)
                .map(|parameter| document.resolve(parameter)["name"].as_str().expect("a name"))
                .collect();
        parameters.sort_unstable();
        lines += &format!("{} {}\n", operation.method, operation.path);
        lines += &format!("  {}\n", fields["operationId"].as_str().expect("a name"));
        lines += &format!("  takes {}\n", parameters.join(" "));
        if let Some(body) = fields.get("requestBody") {
            lines += &format!("  body {}\n", body["$ref"].as_str().expect("a reference"));
        }
        lines += &format!("  gives {}\n", statuses.join(" "));
    }
    insta::assert_snapshot!("operations", lines);
}
