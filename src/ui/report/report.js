"use strict";
(() => {
  const all = [...document.querySelectorAll(".candidate")];
  const byNumber = (n) => document.getElementById("c-" + n);
  let at = -1;
  const go = (candidate) => {
    if (!candidate) return;
    at = all.indexOf(candidate);
    all.forEach((other) => other.classList.toggle("here", other === candidate));
    candidate.focus({ preventScroll: true });
    candidate.scrollIntoView({ block: "start" });
  };
  const act = (key) => {
    if (key === "j") go(all[Math.min(at + 1, all.length - 1)]);
    else if (key === "k") go(all[Math.max(at - 1, 0)]);
    else if (key >= "1" && key <= "9") go(byNumber(key));
    else if (key === "d") {
      const change = all[Math.max(at, 0)]?.querySelector(".change");
      if (change) change.open = !change.open;
    }
  };
  const [left, right, rest, beside] = ["left", "right", "no-pair", "beside"].map((id) => document.getElementById(id));
  const choose = () => {
    const [one, other] = [left.value, right.value];
    const chosen = document.getElementById("p-" + one + "-" + other) ?? document.getElementById("p-" + other + "-" + one);
    for (const pair of document.querySelectorAll(".pair")) {
      pair.hidden = pair !== chosen;
      pair.open = pair === chosen;
    }
    // Both changes, each against the base.
    rest.hidden = chosen !== null || one === other;
    rest.querySelectorAll(".name").forEach((name, at) => {
      name.textContent = [left, right][at].selectedOptions[0].text;
    });
    const copies = rest.hidden ? [] : [one, other].map((n) => byNumber(n).querySelector(".change").cloneNode(true));
    copies.forEach((copy) => { copy.open = true; });
    beside.replaceChildren(...copies);
  };
  if (left) {
    [left, right].forEach((list) => list.addEventListener("change", choose));
    choose();
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("select, input, textarea");
    if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !typing) act(event.key);
  });
  document.documentElement.classList.add("js");
})();
