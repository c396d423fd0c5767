import { decode, type RunData } from "./data.js";
import { Page } from "./page.js";

/** The element with an id that page.template.html has. */
function element(id: string): HTMLElement {
  return document.getElementById(id)!;
}

function refuse(sentence: string): void {
  element("fault").textContent = sentence;
  element("fault").hidden = false;
}

function describe(data: RunData): void {
  if (data.title) {
    document.title = `${data.title} - tutti`;
    element("title").textContent = data.title;
  }
  element("about").replaceChildren(...data.about.flatMap(([what, content]) => {
    const [name, value] = [document.createElement("dt"), document.createElement("dd")];
    name.textContent = what;
    value.textContent = content;
    return [name, value];
  }));
  element("notes").replaceChildren(...data.notes.map((note) => {
    const item = document.createElement("li");
    item.textContent = note;
    return item;
  }));
  element("written-by").textContent = data.writtenBy && `Written by ${data.writtenBy}.`;
}

performance.mark("tutti-data");
const data = decode(element("tutti-data").textContent ?? "");
if (typeof data === "string") {
  refuse(data);
} else {
  describe(data);
  element("run").hidden = false;
  new Page(data, element);
  performance.mark("tutti-drawn");
}
