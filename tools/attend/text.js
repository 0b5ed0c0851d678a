// What all parts of the page share: the data, characters as marks and in words, shares in words, and SVG elements.

const data = JSON.parse(document.getElementById('data').textContent);
const characters = [...data.text]; // code points, as octavo counts characters

const isControl = (c) => /[\p{C}\p{Z}]/u.test(c);
const codeOf = (c) => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

// One visible glyph for any character.
function markOf(c) {
  const code = c.codePointAt(0);
  if (c === ' ') return '␣';
  if (c === '\n') return '⏎';
  if (c === '\t') return '⇥';
  if (code < 0x20) return String.fromCodePoint(0x2400 + code); // its picture
  if (isControl(c)) return '□';
  return /\p{M}/u.test(c) ? '◌' + c : c;
}

function nameOf(c) {
  if (c === ' ') return 'space';
  if (c === '\n') return 'line end';
  if (c === '\t') return 'tab';
  return isControl(c) ? codeOf(c) : `“${markOf(c)}”`;
}

// The run of characters around position t that are no white space; empty where it is white space itself.
function wordAround(t) {
  const inside = (i) => i >= 0 && i < characters.length && !/\s/u.test(characters[i]);
  if (!inside(t)) return '';
  let begin = t, end = t + 1;
  while (inside(begin - 1)) --begin;
  while (inside(end)) ++end;
  return characters.slice(begin, end).map(markOf).join('');
}

function placeOf(t) {
  const word = wordAround(t);
  const inWord = word && word !== markOf(characters[t]) ? `, in “${word}”` : '';
  return `Character ${t + 1} of ${characters.length}: ${nameOf(characters[t])}${inWord}`;
}

// "47%"; what rounds to nothing is said so.
function percent(share) {
  return share > 0 && share < 0.005 ? 'under 1%' : `${Math.round(100 * share)}%`;
}

// "“l” just before 47%, itself 30%, “a” 2 back 12%; the other 50 get 11% together."
function wordsOfRow(row) {
  const t = row.length - 1, most = 4;
  if (t === 0) return 'itself, 100%: there is nothing before it.';
  const order = row.map((_, s) => s).sort((a, b) => row[b] - row[a] || b - a);
  const named = order.slice(0, most).filter((s) => row[s] >= 0.005);
  const parts = named.map((s) => {
    const where = s === t ? 'itself' : nameOf(characters[s]) + (s === t - 1 ? ' just before' : ` ${t - s} back`);
    return `${where} ${percent(row[s])}`;
  });
  const others = row.length - named.length;
  const rest = order.slice(named.length).reduce((sum, s) => sum + row[s], 0);
  const tail = others === 0 ? '' : others === 1 ? `; the other one ${percent(rest)}` : `; the other ${others} together ${percent(rest)}`;
  return parts.join(', ') + tail + '.';
}

function headOf(layer, head) {
  return data.heads[(layer - 1) * data.heads_per_layer + head - 1];
}

// An element of SVG with attributes, and with a text where one is given.
function svgElement(name, attributes = {}, text = '') {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function htmlElement(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// Calls at(x, y), in the coordinates of `svg`, where a mouse or pen points and where a finger taps. A finger that moves scrolls.
function onPointing(svg, at) {
  const report = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    at(point.x, point.y);
  };
  svg.addEventListener('pointermove', (event) => event.pointerType !== 'touch' && report(event));
  svg.addEventListener('click', report);
}

// Calls the handler that `handlers` has for a key, by its name, and keeps the browser from scrolling.
function onKeys(element, handlers) {
  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !handlers[event.key]) return;
    event.preventDefault();
    handlers[event.key](event);
  });
}
