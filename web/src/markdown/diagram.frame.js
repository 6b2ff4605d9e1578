// Draws diagrams, inside a frame of its own: an opaque origin that can reach neither the page nor the server, under a
// policy that lets the drawing library set the styles it measures with. It is told a text and answers with a picture.
async function draw({ id, text, settings }) {
  const { mermaid } = globalThis;
  mermaid.initialize(settings);
  const { svg } = await mermaid.render(`diagram-${id}`, text);
  return asImage(svg);
}

// An image has no room to adapt to: it says how large it is. Written anew as XML, which images must be.
function asImage(markup) {
  const svg = new DOMParser().parseFromString(markup, "text/html").querySelector("svg");
  const [, , width, height] = svg
    .getAttribute("viewBox")
    .split(/[\s,]+/)
    .map(Number);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.style.maxWidth = "";
  return { svg: new XMLSerializer().serializeToString(svg), width, height };
}

// One after the other: the library keeps what it is drawing in one place.
let last = Promise.resolve();

addEventListener("message", ({ data, source }) => {
  if (source !== parent) return;
  last = last.then(async () => {
    let answer;
    try {
      answer = await draw(data);
    } catch (error) {
      answer = { error: String(error?.message ?? error) };
    }
    parent.postMessage({ id: data.id, ...answer }, "*");
  });
});

parent.postMessage({ ready: true }, "*");
