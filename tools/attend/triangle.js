// Part 2, the triangle: all weights of one head, one of its rows in words.

// `choose` is called with what the reader picks: {position}, {layer} or {head}. Returns show(state).
function makeTriangle(choose) {
  const svg = document.getElementById('triangle'), scroll = svg.parentElement;
  const length = characters.length;
  const wordSize = 10; // pixels
  const words = characters.flatMap((_, t) => (wordAround(t) && (t === 0 || !wordAround(t - 1)) ? [{ begin: t, word: wordAround(t) }] : []));
  let cell = 0, margin = 0, hasMarks = false, shown = {};

  function fillSelect(id, count, key) {
    const select = document.getElementById(id);
    for (let i = 1; i <= count; ++i) select.append(htmlElement('option', { value: i, textContent: i }));
    select.addEventListener('change', () => choose({ [key]: Number(select.value) }));
    return select;
  }
  const layer = fillSelect('layer', data.layers, 'layer'), head = fillSelect('head', data.heads_per_layer, 'head');

  const rowMark = svgElement('rect', { class: 'row-mark', rx: 2 });
  const squares = svgElement('g'), labels = svgElement('g');
  const edge = svgElement('path', { class: 'edge' });
  svg.append(rowMark, edge, squares, labels);

  // Sizes that depend on the room there is. Where a character has enough of it, each row and column has its mark; else each word stands
  // where it begins, beside the edge, where there is nothing else.
  function layOut() {
    const room = scroll.clientWidth, least = 3, legible = 12, most = 18;
    cell = Math.min(room / (length + 3), most);
    hasMarks = cell >= legible;
    if (!hasMarks) cell = Math.max(Math.min(room / (length + 1), ...words.map(roomLeft)), least);
    margin = hasMarks ? 1.5 * cell : 1;
    let path = `M${margin} ${margin}`;
    for (let t = 0; t < length; ++t) path += `h${cell}v${cell}`;
    edge.setAttribute('d', `${path}H${margin}Z`);
    labels.setAttribute('font-size', hasMarks ? cell - 2 : wordSize);
    labels.replaceChildren(...(hasMarks ? marks() : wordLabels()));
    svg.setAttribute('width', Math.max(margin + (length + 0.5) * cell, hasMarks ? 0 : room - 1));
    svg.setAttribute('height', margin + (length + 0.5) * cell);

    // The cell at which a word's label ends with the room.
    function roomLeft({ begin, word }) {
      return (room - 8 - 0.62 * wordSize * word.length) / (begin + 1);
    }
  }

  function marks() {
    return characters.flatMap((c, t) => {
      const middle = margin + (t + 0.5) * cell;
      return [
        svgElement('text', { class: 'row', x: margin - 0.8 * cell, y: middle + 0.3 * cell }, markOf(c)),
        svgElement('text', { class: 'column', x: middle, y: margin - 0.5 * cell }, markOf(c)),
      ];
    });
  }

  function wordLabels() {
    let free = -Infinity; // below the last label
    return words.flatMap(({ begin, word }) => {
      const y = margin + Math.max((begin + 0.9) * cell, 0.8 * wordSize);
      if (y - wordSize < free) return [];
      free = y;
      return [svgElement('text', { class: 'word', x: margin + (begin + 1) * cell + 4, y }, word)];
    });
  }

  function drawSquares(weights) {
    const parts = [];
    weights.forEach((row, t) =>
      row.forEach((weight, s) => {
        const side = cell * Math.sqrt(weight);
        if (side < 0.25) return; // too small to be seen
        const x = margin + (s + 0.5) * cell - side / 2, y = margin + (t + 0.5) * cell - side / 2;
        parts.push(svgElement('rect', { class: 'weight', x, y, width: side, height: side, 'data-row': t, 'data-column': s }));
      }),
    );
    squares.replaceChildren(...parts);
  }

  function show(state) {
    const isOther = state.layer !== shown.layer || state.head !== shown.head;
    shown = { ...state };
    layer.value = state.layer;
    head.value = state.head;
    const { weights } = headOf(state.layer, state.head), t = state.position;
    if (isOther) drawSquares(weights);
    const place = { x: margin, y: margin + t * cell, width: (t + 1) * cell, height: cell };
    for (const [key, value] of Object.entries(place)) rowMark.setAttribute(key, value);
    labels.querySelectorAll('.chosen-label').forEach((text) => text.classList.remove('chosen-label'));
    if (hasMarks) labels.children[2 * t].classList.add('chosen-label');
    svg.setAttribute('aria-label', `Layer ${state.layer}, head ${state.head}, row ${t + 1}`);
    document.getElementById('row-words').textContent = `${placeOf(t)}. It reads ${wordsOfRow(weights[t])}`;
  }

  // The end of the row, where its head reads most, into view.
  function reveal() {
    const end = margin + (shown.position + 2) * cell;
    if (end > scroll.scrollLeft + scroll.clientWidth || end < scroll.scrollLeft + margin) {
      scroll.scrollLeft = end - scroll.clientWidth;
    }
  }

  onPointing(svg, (_, y) => {
    const t = Math.floor((y - margin) / cell);
    if (t >= 0 && t < length) choose({ position: t });
  });
  const go = (position) => {
    choose({ position: Math.min(Math.max(position, 0), length - 1) });
    reveal();
  };
  onKeys(svg, {
    ArrowUp: () => go(shown.position - 1),
    ArrowDown: () => go(shown.position + 1),
    Home: () => go(0),
    End: () => go(length - 1),
  });
  document.getElementById('up').addEventListener('click', () => go(shown.position - 1));
  document.getElementById('down').addEventListener('click', () => go(shown.position + 1));
  layOut();
  new ResizeObserver(() => {
    const before = cell;
    layOut();
    if (cell !== before) drawSquares(headOf(shown.layer, shown.head).weights);
    show(shown);
  }).observe(scroll);
  return show;
}
