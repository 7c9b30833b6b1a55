# SPDX-License-Identifier: Apache-2.0
"""How the HTML report looks, and the few lines of JavaScript that its buttons need. It reads well without both."""

CSS = """
:root { color-scheme: light dark; --page: #faf8f5; --card: #fff; --ink: #211d1a; --soft: #665e57; --edge: #e7e1da;
  --rail: #f0ebe5; --wait: #e8590c; --copy: #7950f2; --compute: #1098ad; --host: #a39a91; --gain: #237a34; --loss:
  #c92a2a; --accent: #bf3f0a; --ins: #e6f6e8; --del: #fdeceb; --alarm: #fff4e0; --alarm-edge: #f0b44c }
@media (prefers-color-scheme: dark) {
  :root { --page: #161311; --card: #1f1b18; --ink: #f1ece7; --soft: #b3a99f; --edge: #38312b; --rail: #2b2521;
    --wait: #ff8a3d; --copy: #a48bff; --compute: #3bc9db; --host: #82786f; --gain: #69db7c; --loss: #ff8787;
    --accent: #ff8a3d; --ins: #18301d; --del: #3a1d1b; --alarm: #33270f; --alarm-edge: #8a6420 }
}
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Noto Sans", sans-serif }
.skip { position: absolute; left: -999px }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-top: 2.5rem }
code, pre, .path { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono",
  monospace }
.what { color: var(--soft); margin: 0 0 1.1rem; font-size: .9rem; overflow-wrap: anywhere }
.what b { color: var(--accent); font-weight: 650 }
h1 { font-size: clamp(1.45rem, 4.6vw, 2.15rem); line-height: 1.22; letter-spacing: -.018em; font-weight: 680; margin:
  0 0 1.4rem; text-wrap: balance; overflow-wrap: anywhere }
h2 { font-size: 1.22rem; letter-spacing: -.01em; margin: 0 0 .35rem; line-height: 1.3 }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem }
p { margin: .35rem 0 .9rem; max-width: 46rem }
section > :last-child, .alarm > :last-child { margin-bottom: 0 }
.soft { color: var(--soft) }
section, .alarm { background: var(--card); border: 1px solid var(--edge); border-radius: 14px; padding: 1.35rem 1.5rem
  1.5rem; margin: 0 0 1.15rem }
.alarm { background: var(--alarm); border-color: var(--alarm-edge) }
.alarm h2::before { content: "\\26A0\\FE0E\\2002"; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1px; margin: 0 0 1.2rem;
  background: var(--edge); border: 1px solid var(--edge); border-radius: 14px; overflow: hidden }
.facts div { background: var(--card); padding: .85rem 1.1rem }
.facts dt { color: var(--soft); font-size: .82rem }
.facts dd { margin: .1rem 0 0; font-size: 1.3rem; font-weight: 640; letter-spacing: -.01em; font-variant-numeric:
  tabular-nums; line-height: 1.3 }
.facts .big dd { color: var(--gain) }
.facts small { font-size: .82rem; font-weight: 400; color: var(--soft); letter-spacing: 0 }
ul.why { margin: 0 0 1.3rem; padding-left: 1.15rem }
ul.why li { margin: .15rem 0; overflow-wrap: anywhere }
a { color: var(--accent) }
a:focus-visible, button:focus-visible, [tabindex]:focus-visible, summary:focus-visible { outline: 3px solid
  var(--accent); outline-offset: 2px; border-radius: 4px }
.scroll { overflow-x: auto; margin: 0 -.25rem; padding: 0 .25rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding: 0 0 .5rem; caption-side: top }
th, td { text-align: right; padding: .5rem 0 .5rem 1rem; border-top: 1px solid var(--edge); vertical-align: top }
thead th { border-top: 0; color: var(--soft); font-weight: 500; font-size: .84rem; padding-top: 0; white-space: nowrap
  }
th:first-child { text-align: left; padding-left: 0; font-weight: 500; width: 60%; overflow-wrap: anywhere }
td { white-space: nowrap }
tr.bad th, tr.bad td { color: var(--soft) }
tr.chosen th, tr.chosen td { font-weight: 680 }
.up { color: var(--gain) }
.down { color: var(--loss) }
.note { display: block; margin-top: .3rem; font-weight: 400; font-size: .84rem; color: var(--soft); overflow-wrap:
  anywhere }
.bar { display: block; height: 7px; border-radius: 4px; background: var(--rail); margin-top: .38rem; overflow: hidden
  }
.fill { display: block; height: 100%; border-radius: 4px }
.fill.wait, .dot.wait { background: var(--wait) }
.fill.copy, .dot.copy { background: var(--copy) }
.fill.compute, .dot.compute { background: var(--compute) }
.fill.host, .dot.host { background: var(--host) }
.fill.gain, .dot.gain { background: var(--gain) }
.fill.rest { background: repeating-linear-gradient(135deg, var(--host) 0 3px, transparent 3px 7px) }
rect.wait { fill: var(--wait) }
rect.copy { fill: var(--copy) }
rect.compute { fill: var(--compute) }
rect.host { fill: var(--host) }
.track { margin: 1rem 0 0 }
.track p { margin: 0 0 .3rem; display: flex; flex-wrap: wrap; gap: 0 .7rem; max-width: none }
.track svg { display: block; width: 100%; height: 34px; border-radius: 6px; background: var(--rail) }
.scale { display: flex; justify-content: space-between; color: var(--soft); font-size: .8rem; margin: .3rem 0 0 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; padding: 0; margin: .9rem 0 0;
  font-size: .9rem }
.dot { display: inline-block; width: .72em; height: .72em; border-radius: 3px; margin-right: .45em }
.fall .bar { height: 22px; border-radius: 5px }
.fall th:first-child { width: 86% }
.fall .fill { border-radius: 5px }
.plot { display: grid; grid-template-columns: 4.2rem 1fr; grid-template-rows: 11rem 1.4rem; margin: .8rem .4rem 0 0 }
.plot .y { position: relative; font-size: .78rem; color: var(--soft); font-variant-numeric: tabular-nums }
.plot .y span { position: absolute; right: .55rem; transform: translateY(50%); white-space: nowrap }
.plot .area svg { width: 100%; height: 100%; display: block; overflow: visible }
.plot .x { grid-column: 2; position: relative; font-size: .78rem; color: var(--soft) }
.plot .x span { position: absolute; transform: translateX(-50%); padding-top: .25rem; white-space: nowrap }
.plot .x span:first-child { transform: none }
.grid { stroke: var(--edge); stroke-width: 1; vector-effect: non-scaling-stroke }
.curve { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round }
.under { opacity: .13; stroke: none }
.many .under { display: none }
.curve.wait { stroke: var(--wait) }
.curve.compute { stroke: var(--compute) }
.curve.copy { stroke: var(--copy) }
.curve.host { stroke: var(--host) }
.curve.gain { stroke: var(--gain) }
.under.wait { fill: var(--wait) }
.under.compute { fill: var(--compute) }
.under.copy { fill: var(--copy) }
.under.host { fill: var(--host) }
.under.gain { fill: var(--gain) }
pre { background: var(--page); border: 1px solid var(--edge); border-radius: 10px; padding: .8rem 0; overflow-x: auto;
  font-size: .86rem; line-height: 1.5; margin: .6rem 0 .8rem }
pre code > * { display: block; padding: 0 1rem; min-width: max-content; text-decoration: none; white-space: pre }
pre ins { background: var(--ins) }
pre del { background: var(--del) }
pre .place { color: var(--soft) }
button { font: inherit; font-size: .9rem; border: 1px solid var(--edge); background: var(--card); color: var(--ink);
  border-radius: 8px; padding: .45rem .9rem; cursor: pointer; min-height: 2.5rem }
button:hover { border-color: var(--soft) }
.films { list-style: none; padding: 0; margin: .8rem 0 0; display: grid; grid-template-columns: repeat(auto-fill,
  minmax(8.4rem, 1fr)); gap: 1rem }
.films li { overflow-wrap: anywhere; font-size: .8rem; line-height: 1.35 }
.films b { display: block; font-size: .95rem }
.films img, .films .none { width: 100%; height: auto; aspect-ratio: 1; object-fit: cover; border-radius: 10px;
  background: var(--rail); display: grid; place-items: center; color: var(--soft); margin-bottom: .35rem; text-align:
  center; padding: 0 }
details { margin-top: 1rem }
summary { cursor: pointer; color: var(--soft) }
footer { color: var(--soft); font-size: .88rem; padding-bottom: 3rem }
footer dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .6rem 0 1rem }
footer dd { margin: 0; overflow-wrap: anywhere }
@media (max-width: 34rem) {
  header { padding-top: 1.4rem }
  header, main, footer { padding-left: .9rem; padding-right: .9rem }
  section, .alarm { padding: 1.05rem 1rem 1.15rem; border-radius: 12px }
  .facts { grid-template-columns: 1fr 1fr }
  th, td { padding-left: .6rem }
  th:first-child { width: 50% }
  footer dl { grid-template-columns: 1fr; gap: 0 }
  footer dd { margin-bottom: .5rem }
  .plot { grid-template-columns: 3.4rem 1fr }
}
@media print {
  body { background: #fff }
  button, .skip { display: none }
  section { break-inside: avoid }
}
"""

JS = """
const show = (button, words) => { button.textContent = words; document.getElementById("said").textContent = words };
document.getElementById("save").onclick = event => {
  const link = document.createElement("a");
  const text = document.getElementById("document").textContent;
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download = "doctor.json";
  link.click();
  show(event.target, "Saved");
};
const copy = document.getElementById("copy");
if (copy) copy.onclick = async () => {
  const diff = document.getElementById("diff");
  try {
    await navigator.clipboard.writeText(diff.textContent);
    show(copy, "Copied");
  } catch (error) {
    getSelection().selectAllChildren(diff);
    show(copy, "Selected: press Ctrl+C");
  }
};
for (const button of document.querySelectorAll("button")) button.hidden = false;
"""
