// Buttons, slider, key list, and saving the picture. Words come in as textContent only.

const ICONS = { back: "M11 3 4 8l7 5z", play: "M4 2.5 13 8l-9 5.5z", pause: "M4 3h3v10H4zM9 3h3v10H9z", next: "M5 3l7 5-7 5z" };

function html(parent, tag, properties = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  parent.append(made);
  return made;
}

function icon(button, name) {
  button.querySelector("svg")?.remove();
  const svg = document.createElementNS(NS, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" })) svg.setAttribute(key, value);
  add(svg, "path", { d: ICONS[name], fill: "currentColor" });
  button.prepend(svg);
}

function buildControls(player) {
  const { root } = player;
  root.replaceChildren();
  const svg = add(root, "svg", { role: "img" });
  const bar = html(root, "div", { className: "bar" });
  const button = (className, act, drawn) => {
    const made = html(bar, "button", { type: "button", className, onclick: act });
    if (drawn) icon(made, drawn);
    made.append(document.createElement("span"));
    return made;
  };
  const back = button("back", player.back, "back");
  const play = button("play", player.toggle, "play");
  const next = button("next", player.next, "next");
  const slider = html(bar, "input", { type: "range", min: 0, step: 1, oninput: () => player.jump(Number(slider.value)) });
  const count = html(bar, "span", { className: "count" });
  const link = button("link", () => copyLink(player, link));
  const full = button("full", player.full);
  const keys = button("keys", () => help());
  const status = html(root, "p", { className: "unseen" });
  status.setAttribute("role", "status");
  const sheet = html(root, "div", { className: "sheet", hidden: true });
  sheet.setAttribute("role", "dialog");
  const word = (made, text) => { made.querySelector("span").textContent = text; };
  const close = () => (sheet.hidden ? false : ((sheet.hidden = true), root.focus({ preventScroll: true })));
  const help = () => (sheet.hidden ? (fillSheet(player, sheet, close), (sheet.hidden = false), sheet.querySelector("button").focus()) : close());
  let fading = 0;

  return {
    svg, help, close,
    label(d) {
      root.setAttribute("aria-label", d.text.player);
      root.lang = d.lang;
      Object.entries({ back, play, next, link, full, keys }).forEach(([name, made]) => word(made, d.text[name === "keys" ? "help" : name]));
      slider.max = d.steps.length;
      slider.setAttribute("aria-label", d.text.step);
      sheet.hidden = true;
    },
    at(k, n, title, words) {
      slider.value = k;
      slider.style.setProperty("--done", `${(100 * k) / n}%`);
      slider.setAttribute("aria-valuetext", fill(player.d.text.of, { k, n }));
      if (!fading) count.textContent = `${k}/${n}`;
      svg.setAttribute("aria-label", `${title}. ${words}`);
      back.disabled = k === 0;
      next.disabled = k === n;
      if (root.getRootNode().activeElement?.disabled) root.focus({ preventScroll: true });
    },
    say(words) { status.textContent = words; },
    playing(on, d) { icon(play, on ? "pause" : "play"); word(play, on ? d.text.pause : d.text.play); },
    flash(words) {
      clearTimeout(fading);
      count.textContent = words;
      fading = setTimeout(() => { fading = 0; count.textContent = `${player.k}/${player.d.steps.length}`; }, 1500);
    },
  };
}

function fillSheet(player, sheet, close) {
  const { text } = player.d;
  const rows = [
    ["← →  PgUp PgDn", text.key_step, player.next], ["Space  .", text.key_play, player.toggle], ["Home  End", text.key_ends, () => player.jump(0)],
    ["+  −", text.key_speed, () => player.faster(1)], ["F", text.key_full, player.full], ["L", text.key_lang, player.language],
    ["V", text.key_view, player.view], ["P", text.key_png, player.png], ["S", text.key_svg, player.svg], ["?  Esc", text.close, close],
  ];
  sheet.replaceChildren();
  sheet.setAttribute("aria-label", text.help);
  for (const [keys, meaning, act] of rows) {
    const row = html(sheet, "button", { type: "button", onclick: () => (close(), act()) });
    html(row, "kbd", { textContent: keys });
    html(row, "span", { textContent: meaning });
  }
}

async function copyLink(player, button) {
  const { text } = player.d, href = player.address();
  const word = button.querySelector("span");
  let done = true;
  try {
    await navigator.clipboard.writeText(href);
  } catch {  // plain http from another machine: no clipboard API
    const area = html(player.root, "textarea", { value: href });
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  word.textContent = done ? text.link_done : text.link_failed;
  setTimeout(() => { word.textContent = player.d.text.link; }, 1800);
}

function savePicture(player, kind) {
  const { svg } = player.controls;
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", NS);
  copy.setAttribute("width", WIDTH);
  copy.setAttribute("height", player.height);
  const source = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  const name = `ringscope-${player.d.name}-step${player.k}.${kind}`;
  if (kind === "svg") return saveAs(source, name);
  const image = new Image();
  image.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * WIDTH, height: 2 * player.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saveAs(URL.createObjectURL(blob), name), "image/png");
    URL.revokeObjectURL(source);
  };
  image.src = source;
}

function saveAs(href, download) {
  const link = Object.assign(document.createElement("a"), { href, download });
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
