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
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("select, input, textarea");
    if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !typing) act(event.key);
  });
  document.documentElement.classList.add("js");
})();
