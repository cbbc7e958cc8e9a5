// Frames -> SVG. All colours and fonts are attributes of the elements, so that a saved picture needs no style sheet.

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 1200;
const TOP = 92, FOOT = 40, LOG = 332;
const FONT = '"Source Sans", "Source Sans Pro", "Source Sans 3", "Noto Sans KR", "Malgun Gothic", "Apple SD Gothic Neo", NanumGothic, sans-serif';
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

function add(parent, tag, attributes = {}, text) {
  const made = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function theme(root) {
  const css = getComputedStyle(root);
  const read = (name, otherwise) => css.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const back = read("background-color", "#ffffff");
  const dark = luminance(back) < 0.2;
  return {
    back, dark, fore: read("text-color", "#1d2530"), panel: read("secondary-background-color", "#f3f5f8"), line: read("border-color", "#cfd6df"),
    quiet: dark ? "#a9b4c2" : "#54606f", font: FONT, good: dark ? "#2fd6a5" : "#00795a",
    ops: dark ? [{ fill: "#56B4E9", ink: "#000000" }, { fill: "#E69F00", ink: "#000000" }] : [{ fill: "#0072B2", ink: "#ffffff" }, { fill: "#b84a00", ink: "#ffffff" }],
  };
}

function luminance(colour) {
  const probe = colour.startsWith("#") ? colour.slice(1).match(/../g).map((h) => parseInt(h, 16)) : (colour.match(/\d+/g) ?? [255, 255, 255]).map(Number);
  const [r, g, b] = probe.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Cividis is readable with every kind of colour vision; one contribution is its dark end, all ranks its bright end.
function shade(n, most) {
  const at = most > 1 ? (Math.min(n, most) - 1) / (most - 1) : 0.78;
  const colour = CIVIDIS[Math.round(at * (CIVIDIS.length - 1))];
  return { fill: colour, ink: luminance(colour) > 0.18 ? "#000000" : "#ffffff" };
}

function write(parent, ink, x, y, size, words, more = {}) {
  return add(parent, "text", { x, y, "font-size": size, fill: ink, "font-family": FONT, ...more }, words);
}

function bothWays(d) {
  return d.steps.some(({ sends }) => {
    const pairs = new Set(sends.map(([src, dst]) => `${src} ${dst}`));
    return sends.some(([src, dst]) => pairs.has(`${dst} ${src}`));
  });
}

// Where everything stands for a picture of this height.
function geometry(d, height) {
  const pic = d.picture;
  const area = { x: 8, y: TOP, w: WIDTH - LOG - 28, h: height - TOP - FOOT };
  const size = pic.matrix ? { w: 48, h: 48 } : { w: pic.card.w * pic.card.scale, h: pic.card.h * pic.card.scale };
  if (pic.matrix) Object.assign(area, bothWays(d) ? { x: 84, y: TOP + 26, w: 400, h: area.h - 52 } : { w: 540 });  // room for chips around
  const heading = pic.panels.length > 1 ? 30 : 0;
  const gutter = 28, each = (area.w + gutter) / pic.panels.length - gutter;
  const panels = pic.panels.map((panel, i) => {
    const at = new Map(panel.at.map(([place, x, y]) => [place, {
      x: area.x + i * (each + gutter) + size.w / 2 + 4 + x * (each - size.w - 8),
      y: area.y + heading + size.h / 2 + 4 + y * (area.h - heading - size.h - 8),
    }]));
    return { ...panel, at, x: area.x + i * (each + gutter) + each / 2, y: area.y + 20 };
  });
  return { area, size, panels, height, table: { x: 572, y: TOP, w: WIDTH - 580, h: height - TOP - FOOT }, log: { x: WIDTH - LOG, y: TOP, w: LOG - 8, h: height - TOP - FOOT } };
}

function drawCells(parent, d, look, card, box, chunks) {
  return new Map(chunks.map((chunk, i) => {
    const x = box.x + (i % card.columns) * card.cell, y = box.y + Math.floor(i / card.columns) * card.row;
    const w = card.cell - 2, h = card.row - 2;
    const rect = add(parent, "rect", { x, y, width: w, height: h, rx: Math.min(4, w / 3) });
    const roomy = card.cell >= card.need;
    return [chunk, { rect, text: roomy && write(parent, look.fore, x + w / 2, y + h / 2 + 7, 20, "", { "text-anchor": "middle", "font-weight": 600 }) }];
  }));
}

// A cell too narrow for digits shows its count by its brightness alone.
function paintCell({ rect, text }, cell, d, look, { counts, op, want, last }) {
  const colour = cell ? shade(cell.n, d.reduces ? d.ranks : 1) : null;
  const set = (node, attributes) => Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  const changed = op !== undefined;
  set(rect, {
    fill: cell ? colour.fill : "none", stroke: changed ? look.ops[op].fill : cell ? "none" : look.line, "stroke-width": changed ? 4 : 1.5,
    "stroke-dasharray": cell ? "none" : "4 3", opacity: last && !want ? 0.25 : 1, "paint-order": "stroke",
  });
  if (!text) return;
  text.textContent = cell ? (counts ? cell.n : cell.v) : "";
  set(text, { fill: colour ? colour.ink : look.fore, opacity: last && !want ? 0.35 : 1 });
}

function chipWidth(words) {
  return 14 + 11.5 * [...words].length;
}

function chip(parent, look, x, y, op, words) {
  const group = add(parent, "g", { transform: `translate(${x},${y})` });
  const wide = chipWidth(words);
  add(group, "rect", { x: -wide / 2, y: -13, width: wide, height: 26, rx: op ? 4 : 13, fill: look.ops[op].fill, stroke: look.back, "stroke-width": 2 });
  write(group, look.ops[op].ink, 0, 7, 20, words, { "text-anchor": "middle", "font-weight": 700 });
  return group;
}

// From the edge of one box to the edge of another; `aside` parts opposite arrows. In a tree, from bottom to top of the boxes.
function between(from, to, size, aside, tree) {
  const down = Math.sign(to.y - from.y) * (size.h / 2);
  const [a, b] = tree ? [{ x: from.x, y: from.y + down }, { x: to.x, y: to.y - down }] : [from, to];
  const dx = b.x - a.x, dy = b.y - a.y, whole = Math.hypot(dx, dy) || 1;
  const ux = dx / whole, uy = dy / whole, shift = { x: -uy * aside, y: ux * aside };
  const leave = (u, half, moved) => (Math.abs(u) < 1e-9 ? Infinity : (half + 5 - Math.sign(u) * moved) / Math.abs(u));
  const start = tree ? 4 : Math.min(leave(ux, size.w / 2, shift.x), leave(uy, size.h / 2, shift.y));
  const stop = tree ? 4 : 2 + Math.min(leave(-ux, size.w / 2, shift.x), leave(-uy, size.h / 2, shift.y));
  return {
    x1: a.x + ux * start + shift.x, y1: a.y + uy * start + shift.y, x2: b.x - ux * stop + shift.x, y2: b.y - uy * stop + shift.y,
    ux, uy, aside, long: Math.max(0, whole - start - stop),
  };
}

function arrow(parent, look, line, op) {
  const { x1, y1, x2, y2, ux, uy } = line;
  const bx = x2 - ux * 13, by = y2 - uy * 13;
  add(parent, "line", { x1, y1, x2: bx, y2: by, stroke: look.ops[op].fill, "stroke-width": 3, "stroke-dasharray": op ? "none" : "9 5" });
  add(parent, "polygon", { points: `${x2},${y2} ${bx - uy * 7},${by + ux * 7} ${bx + uy * 7},${by - ux * 7}`, fill: look.ops[op].fill });
}
