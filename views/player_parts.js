// The parts of the picture that stay (cards, table, legend) and those of one step (arrows, log).

function scene(svg, d, look, height) {
  const g = geometry(d, height);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  add(svg, "rect", { width: WIDTH, height, fill: look.back });
  const it = {
    g, d, look, svg, cells: [],
    title: write(svg, look.fore, 10, 36, 34, "", { "font-weight": 700 }),
    clock: write(svg, look.fore, WIDTH - 10, 35, 28, "", { "text-anchor": "end", "font-variant-numeric": "tabular-nums" }),
    say: write(svg, look.fore, 10, 72, 23, ""),
  };
  const edges = add(svg, "g"), cards = add(svg, "g");
  g.panels.forEach((panel, i) => {
    for (const [a, b] of panel.edges) {
      const [from, to] = [panel.at.get(a), panel.at.get(b)];
      const { x1, y1, x2, y2 } = between(from, to, g.size, 0, d.picture.kind === "tree");
      add(edges, "line", { x1, y1, x2, y2, stroke: look.line, "stroke-width": 2 });
    }
    if (g.panels.length > 1) {
      const words = fill(d.text.tree, { r: i + 1, chunks: chunkName(d, panel.chunks[0], panel.chunks.length) });
      write(cards, look.quiet, panel.x, panel.y, 20, words, { "text-anchor": "middle", "font-weight": 600 });
    }
    for (const [place, spot] of panel.at) drawPlace(it, cards, panel, place, spot);
  });
  if (d.picture.matrix) drawTable(it, add(svg, "g"));
  it.moving = add(svg, "g");
  it.log = add(svg, "g");
  write(svg, look.quiet, 10, height - 10, 20, d.note);
  it.scale = add(svg, "g");
  return it;
}

function drawPlace(it, parent, panel, place, spot) {
  const { d, look, g } = it;
  const { w, h } = g.size, x = spot.x - w / 2, y = spot.y - h / 2;
  const aggregates = place >= d.ranks;
  const frame = { x, y, width: w, height: h, rx: aggregates ? 3 : 9, fill: look.panel, stroke: aggregates ? look.fore : look.line, "stroke-width": aggregates ? 2.5 : 1.5 };
  if (d.picture.matrix) {
    add(parent, "rect", { ...frame, rx: aggregates ? 3 : w / 2 });
    write(parent, look.fore, spot.x, spot.y + 7, 20, place < d.ranks ? place : "S", { "text-anchor": "middle", "font-weight": 700 });
    return;
  }
  const card = { ...d.picture.card, row: 27, need: d.picture.card.cell };
  const group = add(parent, "g", { transform: `translate(${x},${y}) scale(${card.scale})` });
  add(group, "rect", { ...frame, x: 0, y: 0, width: card.w, height: card.h });
  const name = card.short && place < d.ranks ? String(place) : placeName(d, place);
  const across = Math.min(panel.chunks.length, card.columns) * card.cell;
  const at = card.inline ? { x: card.w - across - 4, y: 5 } : { x: (card.w - across) / 2 + 1, y: 27 };
  const middle = card.inline ? (card.w - across - 2) / 2 : card.w / 2;
  write(group, look.fore, middle, card.inline ? card.h / 2 + 7 : 20, 20, name, { "text-anchor": "middle", "font-weight": 700 });
  it.cells.push([place, drawCells(group, d, look, card, at, panel.chunks)]);
}

function drawTable(it, parent) {
  const { d, look, g: { table } } = it;
  const rows = d.places, head = 26, side = 74;
  const row = Math.min(30, (table.h - head) / rows), wide = (table.w - side) / d.chunks;
  const card = { columns: d.chunks, cell: Math.min(wide, 44), row, need: d.picture.card.cell - 5 };
  for (let c = 0; c < d.chunks; c++) {
    if (card.cell >= card.need || c % 8 === 0) {
      write(parent, look.quiet, table.x + side + (c + 0.5) * card.cell, table.y + 19, 20, fill(d.text.chunk, { c }), { "text-anchor": card.cell >= card.need ? "middle" : "start" });
    }
  }
  for (let p = 0; p < rows; p++) {
    const y = table.y + head + p * row;
    write(parent, look.fore, table.x + side - 8, y + row / 2 + 7, 20, placeName(d, p), { "text-anchor": "end" });
    it.cells.push([p, drawCells(parent, d, look, card, { x: table.x + side, y }, [...Array(d.chunks).keys()])]);
  }
}

function paint(it, frame, { counts, last }) {
  const { d, look } = it;
  for (const [place, cells] of it.cells) {
    for (const [chunk, cell] of cells) {
      const want = place < d.ranks && d.wants[place][chunk] === "1";
      paintCell(cell, frame.cells[place][chunk], d, look, { counts, op: frame.changed.get(`${place} ${chunk}`), want, last });
    }
  }
  paintScale(it, counts);
}

function paintScale(it, counts) {
  const { d, look, g, scale } = it;
  scale.replaceChildren();
  if (!d.reduces) return;
  const y = g.height - 30, most = d.ranks, step = Math.min(34, 300 / most), roomy = step > 24;
  let x = WIDTH - 10 - most * step - (roomy ? 0 : 28);
  const ends = (at, words) => write(scale, look.fore, at, y + 20, 20, words, { "text-anchor": "end", "font-weight": 600 });
  if (!roomy) {
    ends(x - 6, 1);
    ends(WIDTH - 10, most);
  }
  write(scale, look.quiet, x - (roomy ? 10 : 30), y + 20, 20, counts ? d.text.counts : d.text.summed, { "text-anchor": "end" });
  for (let n = 1; n <= most; n++, x += step) {
    const colour = shade(n, most);
    add(scale, "rect", { x, y, width: step - 2, height: 26, rx: 4, fill: colour.fill });
    if (roomy) write(scale, colour.ink, x + step / 2 - 1, y + 20, 20, n, { "text-anchor": "middle", "font-weight": 600 });
  }
}

// Arrows of a step with their chips; each chip remembers its way so that it can move along it.
function drawArrows(it, list, before) {
  const { d, look, g } = it;
  it.moving.replaceChildren();
  const shafts = add(it.moving, "g");
  const panelOf = (a) => g.panels.find((p) => p.chunks.includes(a.lines[0].chunk)) ?? g.panels[0];
  const known = new Set(list.map((a) => `${panelOf(a).x} ${a.src} ${a.dst}`));
  return list.map((a) => {
    const panel = panelOf(a);
    const way = between(panel.at.get(a.src), panel.at.get(a.dst), g.size, known.has(`${panel.x} ${a.dst} ${a.src}`) ? 15 : 0, d.picture.kind === "tree");
    arrow(shafts, look, way, a.op);
    const cell = before.cells[a.src][a.lines[0].chunk];
    const first = d.chunks > 1 && d.picture.kind !== "tree" ? chunkName(d, a.lines[0].chunk, a.lines[0].count) : cell ? String(cell.v) : "";
    const words = (a.op && !d.picture.matrix ? "+" : "") + first + (a.lines.length > 1 ? ` +${a.lines.length - 1}` : "");
    const node = chip(it.moving, look, 0, 0, a.op, words);
    const rest = d.picture.kind === "hub" ? (a.op === ADD ? 0.38 : 0.62) : way.long > 220 ? 0.2 : way.aside ? 0.33 : 0.47;
    return { ...a, way, rest, node, beside: beside(it, way, panel, a, words), crowded: (d.picture.kind === "tree" && way.long < 30) || (d.picture.matrix && way.long > 120) };
  });
}

// A chip as long as its arrow would hide it: it stands beside it. Which side: that of the arrow where there are two, else away
// from the middle of the picture (inside a ring of dots), or from the parent.
function beside(it, way, panel, a, words) {
  const wide = chipWidth(words), along = Math.abs(way.ux) * wide + Math.abs(way.uy) * 26;
  if (way.long > along + 36) return { x: 0, y: 0 };
  const { area } = it.g, [from, to] = [panel.at.get(a.src), panel.at.get(a.dst)], tree = it.d.picture.kind === "tree";
  const centre = tree ? { x: (from.y < to.y ? from : to).x, y: 1e4 } : { x: area.x + area.w / 2, y: area.y + area.h / 2 };
  const outside = -way.uy * (way.x1 - centre.x) + way.ux * (way.y1 - centre.y) < 0 ? -1 : 1;
  const side = way.aside ? 1 : it.d.picture.matrix ? -outside : outside;
  const off = side * (7 + (Math.abs(way.uy) * wide + Math.abs(way.ux) * 26) / 2);
  return { x: -way.uy * off, y: way.ux * off };
}

function moveChips(chips, progress) {
  for (const { node, way, rest, from, to, beside, crowded } of chips) {
    const p = progress === null ? rest : Math.max(0, Math.min(1, (progress - from) / Math.max(1e-9, to - from)));
    node.setAttribute("visibility", progress === null && crowded ? "hidden" : "visible");
    node.setAttribute("transform", `translate(${way.x1 + (way.x2 - way.x1) * p + beside.x},${way.y1 + (way.y2 - way.y1) * p + beside.y})`);
  }
}

function drawLog(it, frame, first) {
  const { d, look, g } = it;
  it.log.replaceChildren();
  if (d.picture.matrix) {
    const line = frame.log[0];
    const words = line && `${placeName(d, line.src)} → ${placeName(d, line.dst)}  ${chunkName(d, line.chunk, line.count)}: ${arithmetic(d, line, it.counts)}`;
    if (words) write(it.log, look.quiet, WIDTH - 10, 72, 20, words, { "text-anchor": "end" });
    return;
  }
  const { x, y, w, h } = g.log;
  add(it.log, "rect", { x, y, width: w, height: h, rx: 9, fill: look.panel });
  const head = (words) => write(it.log, look.quiet, x + 12, y + 26, 20, words, { "font-weight": 600 });
  if (first) return void drawGuide(it, x, y, head);
  head(d.text.log);
  const high = Math.max(22, Math.min(26, (h - 36) / frame.log.length)), room = Math.floor((h - 36) / high);
  const shown = frame.log.length > room ? frame.log.slice(0, room - 1) : frame.log;
  const name = d.places > 9 ? 158 : 138;
  const row = (i) => y + 30 + (i + 0.8) * high;
  shown.forEach((line, i) => {
    const names = [line.src, line.dst].map((p) => placeName(d, p)).join(" → ");
    write(it.log, look.fore, x + 12, row(i), 20, names);
    if (d.chunks > 1) write(it.log, look.quiet, x + 14 + name, row(i), 20, chunkName(d, line.chunk, line.count));
    write(it.log, look.fore, x + w - 10, row(i), 20, arithmetic(d, line, it.counts), { "text-anchor": "end", "font-weight": 600 });
  });
  if (shown.length < frame.log.length) write(it.log, look.quiet, x + 12, row(shown.length), 20, fill(d.text.more, { k: frame.log.length - shown.length }));
}

function drawGuide(it, x, y, head) {
  const { d, look } = it;
  head(d.text.log_start);
  const rows = d.steps.some((s) => s.sends.some((m) => m[5] === ADD)) ? [[1, "+c0", d.text.read_add]] : [];
  if (d.steps.some((s) => s.sends.some((m) => m[5] !== ADD))) rows.push([0, "c0", d.text.read_copy]);
  rows.forEach(([op, words, meaning], i) => {
    chip(it.log, look, x + 44, y + 60 + i * 44, op, words);
    write(it.log, look.fore, x + 86, y + 67 + i * 44, 20, meaning);
  });
  const below = y + 60 + rows.length * 44;
  add(it.log, "rect", { x: x + 30, y: below - 13, width: 26, height: 25, rx: 4, fill: "none", stroke: look.ops[rows[0]?.[0] ?? 0].fill, "stroke-width": 4 });
  write(it.log, look.fore, x + 86, below + 7, 20, d.text.read_new);
  write(it.log, look.fore, x + 16, below + 51, 20, fill(d.text.read_own, { v: "r + 1" }));
  write(it.log, look.fore, x + 16, below + 95, 20, d.text.read_play, { "font-weight": 700 });
}
