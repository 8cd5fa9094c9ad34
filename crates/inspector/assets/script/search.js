
// The graph can be moved and enlarged: by wheel, by dragging, by buttons, and by keys while it has the
// focus. Only the view box changes, so the picture stays as sharp as it was.
const graph = document.querySelector("svg[data-pan]");
if (graph) {
  const whole = graph.viewBox.baseVal;
  const home = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let view = { ...home };
  const show = () => graph.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  const pan = (x, y) => {
    view = { ...view, x: view.x + x * view.width, y: view.y + y * view.height };
    show();
  };
  /** Enlarges the picture; the point at these fractions of its size stays where it is. */
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const width = Math.min(Math.max(view.width / factor, home.width / 20), home.width * 2);
    const height = (width * home.height) / home.width;
    view = { x: view.x + (view.width - width) * x, y: view.y + (view.height - height) * y, width, height };
    show();
  };
  const reset = () => {
    view = { ...home };
    show();
  };
  const moves = {
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: reset,
    ArrowLeft: () => pan(-0.1, 0),
    ArrowRight: () => pan(0.1, 0),
    ArrowUp: () => pan(0, -0.1),
    ArrowDown: () => pan(0, 0.1),
  };
  graph.addEventListener("keydown", (event) => {
    const act = moves[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  // The page must stay scrollable with the wheel, so the wheel enlarges only a picture that is in use.
  graph.addEventListener("wheel", (event) => {
    if (document.activeElement !== graph && !event.ctrlKey) return;
    event.preventDefault();
    const box = graph.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.15 : 0.87, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }, { passive: false });
  let held = null;
  graph.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType === "mouse") held = { x: event.clientX, y: event.clientY, isMoved: false };
  });
  graph.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.isMoved && Math.hypot(x, y) < 4) return;
    if (!held.isMoved) graph.setPointerCapture(event.pointerId);
    const box = graph.getBoundingClientRect();
    pan(-x / box.width, -y / box.height);
    held = { x: event.clientX, y: event.clientY, isMoved: true };
  });
  graph.addEventListener("pointerup", () => setTimeout(() => { held = null; }));
  graph.addEventListener("pointercancel", () => { held = null; });
  // The end of a drag is no click on the node below it.
  graph.addEventListener("click", (event) => {
    if (held?.isMoved) event.preventDefault();
  }, true);
  graph.addEventListener("dragstart", (event) => event.preventDefault());
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", "Move the picture");
  const buttons = [
    ["+", "Enlarge", moves["+"]],
    ["−", "Shrink", moves["-"]],
    ["←", "Move left", moves.ArrowLeft],
    ["→", "Move right", moves.ArrowRight],
    ["↑", "Move up", moves.ArrowUp],
    ["↓", "Move down", moves.ArrowDown],
    ["Whole picture", "Show the whole picture", reset],
  ];
  for (const [text, name, act] of buttons) {
    const button = element("button", text);
    button.type = "button";
    button.setAttribute("aria-label", name);
    button.addEventListener("click", act);
    tools.append(button);
  }
  graph.before(tools);
}
