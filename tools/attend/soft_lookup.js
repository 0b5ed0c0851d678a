// Part 1, the soft lookup: four words with a key and a value each, and a query that can be moved. Not the model's numbers: an example.

function startSoftLookup() {
  const words = [
    { word: 'bag', key: [1.5, 1.0], value: 3 },
    { word: 'fit', key: [-1.4, 0.9], value: -2 },
    { word: 'car', key: [1.2, -1.3], value: 8 },
    { word: 'because', key: [-1.2, -1.2], value: -6 },
  ];
  const unit = 50, reach = 2.6; // pixels a unit; how far the query may go
  let query = [1.1, 0.3];

  const plane = document.getElementById('plane'), values = document.getElementById('values');
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const signed = (x, digits) => x.toFixed(digits).replace('-', '−');
  const valueX = (value) => 20 + ((value + 8) / 18) * 320;

  // An arrow from the middle to `end`, in units; y points up.
  function arrow(name, end, size) {
    const [x, y] = [end[0] * unit, -end[1] * unit], length = Math.hypot(x, y);
    const group = svgElement('g');
    group.append(svgElement('line', { class: name, x1: 0, y1: 0, x2: x, y2: y }));
    if (length > 0) {
      const [dx, dy] = [(x / length) * size, (y / length) * size];
      const tip = `M${x + dx} ${y + dy}L${x - dy * 0.7} ${y + dx * 0.7}L${x + dy * 0.7} ${y - dx * 0.7}Z`;
      group.append(svgElement('path', { class: `${name}-tip`, d: tip }));
    }
    return group;
  }

  function label(name, text, x, y) {
    return svgElement('text', { class: name, x, y: y + 4.5, 'text-anchor': 'middle' }, text);
  }

  for (const [x1, y1, x2, y2] of [[-150, 0, 150, 0], [0, -150, 0, 150]]) {
    plane.append(svgElement('line', { class: 'axis', x1, y1, x2, y2 }));
  }
  for (const { word, key } of words) {
    const away = 1 + 21 / (unit * Math.hypot(...key));
    plane.append(arrow('key', key, 8), label('key-name', word, key[0] * unit * away, -key[1] * unit * away));
  }
  const moving = svgElement('g');
  const handle = svgElement('circle', { class: 'handle', r: 26 }); // stays the same element while a finger is on it
  plane.append(moving, handle);

  values.append(svgElement('line', { x1: 8, y1: 40, x2: 352, y2: 40 }));
  for (const { word, value } of words) {
    values.append(
      svgElement('circle', { cx: valueX(value), cy: 40, r: 4 }),
      svgElement('text', { x: valueX(value), y: 62 }, word),
      svgElement('text', { x: valueX(value), y: 79 }, signed(value, 0)),
    );
  }
  const mark = svgElement('g', { class: 'mark' });
  values.append(mark);

  const body = document.querySelector('#shares tbody');
  const rows = words.map(({ word }) => {
    const cells = {
      product: htmlElement('td', { className: 'number' }),
      share: htmlElement('td', { className: 'number' }),
      bar: htmlElement('div'),
    };
    const bar = htmlElement('td', { className: 'bar' }, cells.bar);
    body.append(htmlElement('tr', {}, htmlElement('th', { scope: 'row', textContent: word }), cells.product, cells.share, bar));
    return cells;
  });

  function show() {
    const products = words.map(({ key }) => dot(query, key));
    const powers = products.map((product) => Math.exp(product - Math.max(...products)));
    const total = powers.reduce((sum, power) => sum + power, 0);
    const shares = powers.map((power) => power / total);
    rows.forEach((cells, i) => {
      cells.product.textContent = signed(products[i], 2);
      cells.share.textContent = percent(shares[i]);
      cells.bar.style.width = `${100 * shares[i]}%`;
    });

    // The name stands at the arrow's foot, above or below, where there is no key and the query does not point.
    const isNowhere = query[0] === 0 && query[1] === 0;
    moving.replaceChildren(
      arrow('query', query, 14),
      label('query-name', 'small', 0, query[1] > 0 ? 36 : -30),
    );
    handle.setAttribute('cx', query[0] * unit);
    handle.setAttribute('cy', -query[1] * unit);
    plane.setAttribute('aria-label', `Query of “small”: ${signed(query[0], 1)} to the right, ${signed(query[1], 1)} up`);

    const order = words.map((_, i) => i).sort((a, b) => shares[b] - shares[a]);
    const list = order.map((i) => `${words[i].word} ${percent(shares[i])}`).join(', ');
    document.getElementById('lookup-words').textContent =
      isNowhere
        ? 'The query is in the very middle and asks for nothing: each word gets 25%.'
        : `The query points most towards “${words[order[0]].word}”: ${list}.`;

    const mix = words.reduce((sum, { value }, i) => sum + shares[i] * value, 0);
    const x = valueX(mix);
    mark.replaceChildren(
      svgElement('path', { d: `M${x} 37l-6 -11h12z` }),
      svgElement('text', { x: Math.min(Math.max(x, 40), 320), y: 18 }, `mix ${signed(mix, 1)}`),
    );
    const terms = words.map(({ word, value }, i) => `${percent(shares[i])} of ${word}'s ${signed(value, 0)}`);
    document.getElementById('mix').textContent = `The mix: ${terms.join(' + ')} = ${signed(mix, 1)}.`;
  }

  function move(x, y) {
    const limited = (v) => Math.min(Math.max(v, -reach), reach);
    const near = Math.hypot(x, y) < 0.05; // so that the middle can be hit
    query = near ? [0, 0] : [limited(x), limited(y)];
    show();
  }

  function moveTo(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
    move(point.x / unit, -point.y / unit);
  }

  // A mouse may begin anywhere; a finger at the handle, for elsewhere it scrolls.
  plane.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || (event.pointerType === 'touch' && event.target !== handle)) return;
    plane.setPointerCapture(event.pointerId);
    if (event.target !== handle) moveTo(event);
  });
  handle.addEventListener('touchstart', (event) => event.preventDefault(), { passive: false });
  plane.addEventListener('pointermove', (event) => plane.hasPointerCapture(event.pointerId) && moveTo(event));
  plane.addEventListener('click', (event) => event.target !== handle && moveTo(event));

  const step = (dx, dy) => (event) => {
    const size = event.shiftKey ? 0.5 : 0.1;
    const tenths = (v) => Math.round(10 * v) / 10;
    move(tenths(query[0] + dx * size), tenths(query[1] + dy * size));
  };
  onKeys(plane, {
    ArrowLeft: step(-1, 0),
    ArrowRight: step(1, 0),
    ArrowUp: step(0, 1),
    ArrowDown: step(0, -1),
    Home: () => move(0, 0),
  });

  const aims = document.getElementById('aims');
  for (const { word, key } of words) {
    const far = 2 / Math.hypot(...key);
    const aim = htmlElement('button', { type: 'button', textContent: `At ${word}` });
    aim.addEventListener('click', () => move(key[0] * far, key[1] * far));
    aims.append(aim);
  }
  const middle = htmlElement('button', { type: 'button', textContent: 'To the middle' });
  middle.addEventListener('click', () => move(0, 0));
  aims.append(middle);
  show();
}
