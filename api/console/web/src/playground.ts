// The playground of the documentation: the engine in the browser.
import { mount } from "svelte";
import Playground, { type Example } from "./Playground.svelte";

const target = document.querySelector<HTMLElement>("#workbench");
if (target) {
  const examples = JSON.parse(target.dataset.examples!) as Example[];
  target.replaceChildren();
  mount(Playground, { target, props: { examples, scripts: target.dataset.scripts! } });
}
