// Programs for the browser, as text: the tests themselves know no document.

/** Texts with less contrast to what is behind them than 4.5 to 1 (WCAG 2, AA), as `text: contrast`. */
export const FAINT = `(() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === '' || element.closest('script,style,template,noscript,.spoken,.skip') !== null || !element.checkVisibility()) continue;
    const [one, other] = [light(rgb(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faint.push(node.data.trim() + ': ' + contrast.toFixed(2));
  }
  return [...new Set(faint)];
})()`;

/** Elements that stick out of the screen or of the panel that they stand in. */
export const CUT_OFF = `(() => {
  const out = [];
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('script,style,template,.spoken,.skip') !== null || !element.checkVisibility()) continue;
    const { right, width } = element.getBoundingClientRect();
    const panel = element.parentElement.closest('.market, .panel > li, .tiles > div');
    const edge = Math.min(innerWidth, panel === null ? innerWidth : panel.getBoundingClientRect().right);
    if (width > 0 && right > edge + 0.5) out.push(element.tagName + ' ' + element.className + ' ' + element.textContent.slice(0, 40));
  }
  return out;
})()`;

/** Things that a screen reader could not name, or would name twice. */
export const NAMELESS = `(() => {
  const wrong = [];
  const note = (what, elements) => { for (const element of elements) wrong.push(what + ': ' + element.outerHTML.slice(0, 80)); };
  const all = (selector) => [...document.querySelectorAll(selector)];
  note('no text', all('a, button, summary, h1, h2, h3').filter((element) => element.textContent.trim() === ''));
  note('no name', all('[role=img], img').filter((element) => !element.getAttribute('aria-label') && !element.getAttribute('alt')));
  note('not hidden', all('svg:not([role=img]):not([aria-hidden=true])'));
  note('label of nothing', all('[aria-labelledby]').filter((element) => document.getElementById(element.getAttribute('aria-labelledby')) === null));
  note('id twice', all('[id]').filter((element) => all('[id="' + CSS.escape(element.id) + '"]').length > 1));
  note('not in a list', all('li').filter((element) => element.parentElement.getAttribute('role') !== 'list'));
  note('not in a description list', all('dt, dd').filter((element) => element.parentElement.parentElement.tagName !== 'DL'));
  note('same name twice', all('summary').filter((element) => all('summary').some((other) => other !== element && other.textContent === element.textContent)));
  return wrong;
})()`;
