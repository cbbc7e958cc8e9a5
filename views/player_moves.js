// Moves -> what every cell holds after each step. A cell is null or {v: value, n: contributions}; rank r starts with value r + 1.

const ADD = 1;

function frames(d) {
  const cells = [];
  for (let p = 0; p < d.places; p++) {
    cells.push(Array.from({ length: d.chunks }, (_, c) => (p < d.ranks && d.holds[p][c] === "1" ? { v: p + 1, n: 1 } : null)));
  }
  const all = [{ cells, log: [], changed: new Map() }];
  for (const step of d.steps) all.push(advance(all.at(-1).cells, step.sends));
  return all;
}

function advance(before, sends) {
  // Every read of a step sees the values before the step: `before` is read, `cells` is written.
  const cells = before.map((row) => row.slice());
  const changed = new Map();
  const log = sends.map(([src, dst, chunk, count, into, op]) => {
    const sums = [];
    for (let i = 0; i < count; i++) {
      const got = before[src][chunk + i];
      const had = cells[dst][into + i];
      if (!got) continue;
      const adds = op === ADD && had;
      cells[dst][into + i] = adds ? { v: had.v + got.v, n: had.n + got.n } : got;
      changed.set(`${dst} ${into + i}`, op);
      sums.push({ got, had: adds ? had : null, now: cells[dst][into + i] });
    }
    return { src, dst, chunk, count, op, sums };
  });
  return { cells, log, changed };
}

function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function chunkName(d, chunk, count) {
  const first = fill(d.text.chunk, { c: chunk });
  return count > 1 ? `${first}–${chunk + count - 1}` : first;
}

function placeName(d, place) {
  if (place < d.ranks) return fill(d.text.gpu, { r: place });
  return d.places - d.ranks === 1 ? d.text.switch : fill(d.text.switches, { r: place - d.ranks });
}

// The arithmetic of one send: "1 + 5 = 6", "copy 36"; "…" where its chunks differ.
function arithmetic(d, line, counts) {
  const show = (cell) => (counts ? cell.n : cell.v);
  const words = line.sums.map(({ got, had, now }) =>
    had ? `${show(got)} + ${show(had)} = ${show(now)}` : line.op === ADD ? String(show(now)) : fill(d.text.copied, { v: show(now) }));
  return words.every((word) => word === words[0]) ? words[0] ?? "" : `${words[0]} …`;
}

// Sends of a step with the same ends and operation share an arrow.
function arrows(log, sends) {
  const found = new Map();
  log.forEach((line, i) => {
    if (line.src === line.dst) return;
    const key = `${line.src} ${line.dst} ${line.op}`;
    const arrow = found.get(key) ?? { src: line.src, dst: line.dst, op: line.op, lines: [], start: Infinity, end: 0 };
    arrow.lines.push(line);
    arrow.start = Math.min(arrow.start, sends[i][6]);
    arrow.end = Math.max(arrow.end, sends[i][7]);
    found.set(key, arrow);
  });
  return [...found.values()];
}

function microseconds(t) {
  return t.toLocaleString("en-US", { minimumFractionDigits: t < 1e5 ? 1 : 0, maximumFractionDigits: t < 1e5 ? 1 : 0 });
}
