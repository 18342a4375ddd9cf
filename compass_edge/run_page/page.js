"use strict";
const video = document.getElementById("video"), curve = document.getElementById("curve"), head = document.getElementById("head");
const points = JSON.parse(document.getElementById("points").textContent);
const { left, width, seconds } = Object.fromEntries(Object.entries(curve.dataset).map(([name, text]) => [name, Number(text)]));
const start = video ? Number(video.dataset.start) : 0;

function valueAt(at) {
  const next = points.findIndex((point) => point[0] > at);
  if (next <= 0) return points[next === 0 ? 0 : points.length - 1][1];
  const [[t0, p0], [t1, p1]] = [points[next - 1], points[next]];
  return p0 + ((p1 - p0) * (at - t0)) / (t1 - t0);
}
function show(at) {
  const x = left + width * Math.min(Math.max(at / seconds, 0), 1);
  head.setAttribute("x1", x);
  head.setAttribute("x2", x);
  head.classList.add("on");
  document.getElementById("value").textContent = valueAt(at).toFixed(0);
  document.getElementById("when").textContent = `at ${at.toFixed(1)} s`;
}
function seek(at) {
  if (video) video.currentTime = start + at;
  show(at);
}
function seekTo(event) {
  const box = curve.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * curve.viewBox.baseVal.width;
  seek(Math.min(Math.max((x - left) / width, 0), 1) * seconds);
}
curve.addEventListener("pointerdown", seekTo);
curve.addEventListener("pointermove", (event) => { if (event.buttons) seekTo(event); });
for (const button of document.querySelectorAll("button[data-at]"))
  button.addEventListener("click", () => {
    seek(Number(button.dataset.at));
    if (video) video.scrollIntoView({ behavior: "smooth", block: "nearest" });
  });
if (video) {
  const follow = () => {
    show(video.currentTime - start);
    if (!video.paused) requestAnimationFrame(follow);
  };
  video.addEventListener("play", follow);
  video.addEventListener("seeked", () => show(video.currentTime - start));
}
