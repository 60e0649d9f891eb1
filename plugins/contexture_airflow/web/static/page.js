// Airflow shows the page in a frame that may not lead its own window elsewhere: links to Airflow are followed by Airflow.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-leave]");
  if (!link || window.parent === window) return;
  event.preventDefault();
  const outside = window.parent.document.createElement("a");
  outside.href = link.href;
  window.parent.document.body.append(outside);
  outside.click();
  outside.remove();
});

// A button with data-copy copies the text of the field with that id; where the browser forbids it, the text is selected.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  const field = button && document.getElementById(button.dataset.copy);
  if (!field) return;
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  } catch {
    field.focus();
  }
});

// Parts with data-load are loaded after the page; those with data-every, so many seconds after they were loaded, again.
// The elements of the response replace those with the same id.
const LONGEST = 30_000;

async function load(part) {
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(part.dataset.load, { signal: AbortSignal.timeout(LONGEST) });
    // A session that has ended leads to a login page, which is no part of this one.
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    part = replace(await answer.text(), part);
    part.querySelectorAll(":scope > .unloaded").forEach((each) => each.remove());
    part.dataset.failures = "0";
  } catch {
    part.dataset.failures = String(Number(part.dataset.failures ?? 0) + 1);
    offer(part);
  }
  part.removeAttribute("aria-busy");
  plan(part);
}

function replace(text, part) {
  const received = document.createElement("template");
  received.innerHTML = text;
  for (const fresh of [...received.content.children]) {
    const old = document.getElementById(fresh.id);
    if (!old || !fresh.id) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(fresh);
    if (focused) [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
    if (old === part) part = fresh;
  }
  return part;
}

function offer(part) {
  if (part.querySelector(":scope > .unloaded") || part.tagName === "TBODY") return;
  part.querySelectorAll(":scope > .loading").forEach((each) => each.remove());
  const offered = document.createElement("p");
  offered.className = "unloaded soft small";
  offered.setAttribute("role", "status");
  offered.textContent = "This part could not be loaded. ";
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Load it again";
  again.addEventListener("click", () => {
    offered.remove();
    load(part);
  });
  offered.append(again);
  part.append(offered);
}

function plan(part) {
  const seconds = Number(part.dataset.every);
  if (!seconds || !part.isConnected) return;
  const wait = seconds * 1000 * 2 ** Math.min(5, Number(part.dataset.failures ?? 0));
  setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", () => load(part), { once: true }) : load(part)), wait);
}

for (const part of document.querySelectorAll("[data-load]")) {
  if (part.dataset.every) plan(part);
  else load(part);
}
