// The step player: a Streamlit component. player_moves.js, player_draw.js and player_parts.js stand before it in one module.

const SPEEDS = [0.3, 0.5, 0.8, 1.2, 2, 3, 5];
const instances = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector("#player");
  let me = instances.get(parentElement);
  const fresh = !me;
  if (fresh) {
    me = new Player(root);
    instances.set(parentElement, me);
  }
  me.setLanguage = () => setTriggerValue("lang", data.lang === "ko" ? "en" : "ko");
  me.load(data);
  if (fresh && (document.activeElement === document.body || !document.activeElement)) root.focus({ preventScroll: true });
  return () => me.stop();
}

class Player {
  constructor(root) {
    this.root = root;
    Object.assign(this, { k: 0, speed: 3, counts: false, id: null, timer: 0, frame: 0 });
    this.controls = buildControls(this);
    root.onkeydown = (event) => this.key(event);
    this.watch = new ResizeObserver(() => this.build());
    this.watch.observe(this.controls.svg);
  }

  load(data) {
    this.pause();
    this.d = data;
    this.frames = frames(data);
    if (this.id !== data.id) [this.id, this.k] = [data.id, Math.max(0, Math.min(data.step ?? 0, data.steps.length))];
    this.controls.label(data);
    this.look = theme(this.root);
    this.height = 0;
    this.build();
  }

  // The picture is 1200 wide; in full screen it grows as tall as the screen lets it.
  build() {
    const { svg } = this.controls;
    const full = Boolean(svg.getRootNode().fullscreenElement) && svg.clientWidth > 0;
    const height = full ? Math.round(Math.max(520, Math.min(900, (WIDTH * svg.clientHeight) / svg.clientWidth))) : 520;
    if (height === this.height || !this.d) return;
    this.height = height;
    this.scene = scene(svg, this.d, this.look, height);
    this.show(this.k);
  }

  show(k) {
    cancelAnimationFrame(this.frame);
    const { d, scene: it, frames: all } = this;
    const step = d.steps[k - 1], last = k === d.steps.length;
    this.k = k;
    it.counts = this.counts;
    this.caption(k);
    paint(it, all[k], { counts: this.counts, last });
    this.chips = step ? drawArrows(it, arrows(all[k].log, step.sends), all[k - 1]) : it.moving.replaceChildren();
    if (step) moveChips(this.chips, null);
    drawLog(it, all[k], k === 0);
    this.controls.say(`${it.title.textContent}. ${it.say.textContent}`);
  }

  caption(k) {
    const { d, scene: it } = this;
    const step = d.steps[k - 1], n = d.steps.length;
    it.title.textContent = step ? fill(d.text.title, { k, n, phase: step.phase }) : d.title;
    it.say.textContent = !step ? d.start : k === n ? d.done : step.say;
    it.clock.textContent = fill(d.text.clock, { t: microseconds(step ? step.end : 0) });
    this.controls.at(k, n, it.title.textContent, it.say.textContent);
  }

  // Chips leave and arrive when the simulator says so, relative to the step.
  animate(k) {
    const { scene: it, frames: all, d } = this;
    const step = d.steps[k - 1];
    this.show(k);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    paint(it, { ...all[k - 1], changed: new Map() }, { counts: this.counts, last: false });
    const from = Math.min(...step.sends.map((m) => m[6])), to = step.end || 1;
    const chips = this.chips.map((c) => ({ ...c, from: (c.start - from) / (to - from || 1), to: (c.end - from) / (to - from || 1) }));
    const took = Math.min(900, SPEEDS[this.speed] * 550), began = performance.now();
    const tick = (now) => {
      const p = (now - began) / took;
      if (p >= 1) return this.show(k);
      moveChips(chips, p);
      it.clock.textContent = fill(d.text.clock, { t: microseconds(from + (to - from) * Math.max(0, p)) });
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  go(k, moving = false) {
    const to = Math.max(0, Math.min(k, this.d.steps.length));
    if (moving && to === this.k + 1) this.animate(to);
    else this.show(to);
    if (!this.timer) this.address();
  }

  next = () => (this.pause(), this.go(this.k + 1, true));
  back = () => (this.pause(), this.go(this.k - 1));
  jump = (k) => (this.pause(), this.go(k));

  toggle = () => {
    if (this.timer) return this.pause();
    if (this.k === this.d.steps.length) this.show(0);
    const step = () => {
      this.go(this.k + 1, true);
      if (this.k === this.d.steps.length) return this.pause();
      this.timer = setTimeout(step, SPEEDS[this.speed] * 1000);
    };
    this.timer = -1;
    this.controls.playing(true, this.d);
    step();
  };

  pause() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.controls.playing(false, this.d);
    this.address();
  }

  // The page's address always reopens at this step; Streamlit reads it back on its next run.
  address() {
    const url = new URL(location.href);
    if (this.k) url.searchParams.set("step", this.k);
    else url.searchParams.delete("step");
    if (url.href !== location.href) history.replaceState(history.state, "", url);
    return url.href;
  }

  faster = (by) => {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed - by));
    this.controls.flash(fill(this.d.text.speed, { s: SPEEDS[this.speed] }));
  };
  view = () => ((this.counts = !this.counts), this.show(this.k));
  language = () => (this.pause(), this.setLanguage());
  full = () => (this.root.getRootNode().fullscreenElement ? document.exitFullscreen() : this.root.requestFullscreen?.());
  png = () => savePicture(this, "png");
  svg = () => savePicture(this, "svg");

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // The button or slider in focus keeps its own Space and Enter.
    if ((name === " " || name === "Enter") && event.target.closest("button")) return event.stopPropagation();
    const act = {
      ArrowRight: this.next, PageDown: this.next, ArrowLeft: this.back, PageUp: this.back, Home: () => this.jump(0),
      End: () => this.jump(this.d.steps.length), " ": this.toggle, ".": this.toggle, "+": () => this.faster(1), "=": () => this.faster(1),
      "-": () => this.faster(-1), f: this.full, l: this.language, v: this.view, p: this.png, s: this.svg, "?": this.controls.help,
      Escape: this.controls.close,
    }[name];
    if (!act) return;
    if (act() === false) return;
    event.preventDefault();
    event.stopPropagation();
  }

  stop() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.watch.disconnect();
  }
}
