/** Formulas. The part that sets them is large, and is loaded with the first one. */

/** Prices are written with dollars, too: between two of them must be something that only formulas have. */
const FORMULA = /[\\^_={}<>]|^\s*[a-zA-Z]\s*$/;

export const looksLikeFormula = (text: string): boolean => FORMULA.test(text);

/** Whether a text may contain formulas at all: most do not, and are spared the search. */
export const mayHaveMath = (text: string): boolean => text.includes("$");

export async function mathElement(tex: string, display: boolean): Promise<Element | undefined> {
  const { default: temml } = await import("temml");
  const markup = temml.renderToString(tex, { displayMode: display, throwOnError: false, trust: false });
  const math = new DOMParser().parseFromString(markup, "text/html").querySelector("math");
  if (!math) return undefined;
  // The page's policy takes no styles from attributes; formulas are readable without.
  for (const element of [math, ...math.querySelectorAll("*")]) {
    for (const name of element.getAttributeNames())
      if (name === "style" || name === "href" || name.startsWith("on")) element.removeAttribute(name);
  }
  return document.importNode(math, true);
}
