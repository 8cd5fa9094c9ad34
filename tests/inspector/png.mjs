/** Makes screenshots small: a palette of few colors, as pages have, instead of 24 bits for each pixel. */
import assert from 'node:assert/strict';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLORS_MAX = 32;

/** Returns the same picture with at most 32 colors. Only what Chromium writes can be read: 8 bits, not interlaced. */
export function fewColors(png) {
  const { width, height, channels, data } = read(png);
  const pixels = unfiltered(data, width, height, channels);
  const palette = common(pixels, channels);
  const rows = Buffer.alloc(height * (width + 1));
  const nearest = new Map();
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const color = pixels.readUIntBE((y * width + x) * channels, 3);
      if (!nearest.has(color)) nearest.set(color, closest(palette, color));
      rows[y * (width + 1) + 1 + x] = nearest.get(color);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  const parts = [chunk('IHDR', header), chunk('PLTE', colors), chunk('IDAT', deflateSync(rows, { level: 9 }))];
  return Buffer.concat([SIGNATURE, ...parts, chunk('IEND', Buffer.alloc(0))]);
}

function read(png) {
  assert.ok(png.subarray(0, 8).equals(SIGNATURE));
  const data = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const kind = png.toString('latin1', at + 4, at + 8);
    if (kind === 'IDAT') data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = { 2: 3, 6: 4 }[png[25]];
  assert.ok(png[24] === 8 && channels && png[28] === 0, 'an unknown kind of PNG');
  return { width, height, channels, data: inflateSync(Buffer.concat(data)) };
}

/** Undoes the filters of the rows. */
function unfiltered(data, width, height, channels) {
  const row = width * channels;
  const pixels = Buffer.alloc(height * row);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (row + 1)];
    for (let x = 0; x < row; x += 1) {
      const at = y * row + x;
      const left = x >= channels ? pixels[at - channels] : 0;
      const up = y > 0 ? pixels[at - row] : 0;
      const corner = x >= channels && y > 0 ? pixels[at - row - channels] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[at] = data[y * (row + 1) + 1 + x] + guess;
    }
  }
  return pixels;
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** Returns the most common colors that differ visibly from each other. */
function common(pixels, channels) {
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += channels) {
    const color = pixels.readUIntBE(at, 3);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const palette = [];
  for (const [color] of [...counts].sort(([, one], [, other]) => other - one)) {
    if (palette.length === COLORS_MAX) break;
    if (palette.every((chosen) => distance(chosen, color) > 600)) palette.push(color);
  }
  return palette;
}

function closest(palette, color) {
  let best = 0;
  for (let index = 1; index < palette.length; index += 1) {
    if (distance(palette[index], color) < distance(palette[best], color)) best = index;
  }
  return best;
}

const distance = (one, other) =>
  [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
