// Part 3, the heads: the text once for each head, with arcs from the chosen character to those that the head reads, and its statistics.

// "26 of 53", "88.9%": as the table in a terminal has them.
const statisticsOf = (head) => ({
  'The character just before is largest': `${head.previous_largest} of ${head.previous_positions}`,
  'The space before the word is largest': `${head.space_largest} of ${head.space_positions}`,
  'Weight on itself and the two before': head.recent_share === null ? '–' : `${(100 * head.recent_share).toFixed(1)}%`,
  'Mean distance back': head.mean_distance === null ? '–' : head.mean_distance.toFixed(1),
});

// What the statistics say, in a sentence.
function habitOf(head) {
  if (head.recent_share === null) return 'One character says nothing about its habits.';
  if (head.space_positions > 0 && head.space_largest >= head.space_positions / 2) {
    return 'Often looks back to the space before the word.';
  }
  const place = head.recent_share >= 0.8 ? 'Stays close' : head.recent_share >= 0.6 ? 'Mostly close by, some further back' : 'Spreads far back';
  const favourite = head.previous_largest >= 0.4 * head.previous_positions ? ', often on the character just before' : '';
  return `${place}${favourite}.`;
}

// `choose` is called with {position}. Returns show(state).
function makeHeads(choose) {
  const container = document.getElementById('heads'), length = characters.length;
  const leastPitch = 7.5, mostPitch = 11, top = 66, height = 104; // pixels
  let shown = null;

  const cards = data.heads.map((head) => {
    const svg = svgElement('svg', { height, 'aria-hidden': true });
    const reads = htmlElement('p', { className: 'reads' });
    const list = htmlElement('dl');
    for (const [name, value] of Object.entries(statisticsOf(head))) {
      list.append(htmlElement('dt', { textContent: name }), htmlElement('dd', { textContent: value }));
    }
    const title = htmlElement('h3', { textContent: `Layer ${head.layer}, head ${head.head}` });
    const habit = htmlElement('p', { className: 'habit', textContent: habitOf(head) });
    const card = htmlElement('article', { className: 'head' }, title, habit, svg, reads, list);
    container.append(card);
    const place = { first: 0, pitch: 0, count: 0 }; // which characters the picture has room for
    onPointing(svg, (x) => {
      const t = place.first + Math.floor(x / place.pitch);
      if (t >= place.first && t < place.first + place.count) choose({ position: t });
    });
    return { head, svg, reads, place };
  });

  function draw({ head, svg, reads, place }, t) {
    const room = svg.clientWidth, row = head.weights[t];
    place.pitch = Math.min(Math.max(room / length, leastPitch), mostPitch);
    place.count = Math.min(length, Math.floor(room / place.pitch + 1e-6));
    // A fifth of the room behind the chosen character, where there is text.
    const first = Math.max(0, Math.min(t + 1 - Math.ceil(0.8 * place.count), length - place.count));
    place.first = first;
    const at = (s) => (s - first + 0.5) * place.pitch;

    const arcs = [];
    for (let s = first; s <= t; ++s) {
      if (row[s] < 0.01) continue;
      const stroke = { class: 'arc', 'stroke-width': 1 + 4 * row[s], 'stroke-opacity': Math.sqrt(row[s]), 'data-column': s };
      const radius = (at(t) - at(s)) / 2;
      arcs.push(
        s === t
          ? svgElement('circle', { ...stroke, cx: at(t), cy: top + 30, r: 5 })
          : svgElement('path', { ...stroke, d: `M${at(t)} ${top}A${radius} ${Math.min(radius, top - 6)} 0 0 0 ${at(s)} ${top}` }),
      );
    }
    const text = svgElement('g', { 'font-size': Math.min(place.pitch / 0.62, 16) });
    characters.slice(first, first + place.count).forEach((c, i) => {
      const isChosen = first + i === t;
      text.append(svgElement('text', { class: isChosen ? 'chosen-character' : '', x: at(first + i), y: top + 17 }, markOf(c)));
    });
    svg.replaceChildren(...arcs, text);
    const beyond = row.slice(0, first).reduce((sum, weight) => sum + weight, 0);
    reads.textContent = `Reads ${wordsOfRow(row)}` + (beyond >= 0.005 ? ` ${percent(beyond)} lies left of the picture.` : '');
  }

  function show(state) {
    shown = { ...state };
    document.getElementById('chosen').textContent = placeOf(state.position);
    for (const card of cards) draw(card, state.position);
  }

  const step = (by) => () => choose({ position: Math.min(Math.max(shown.position + by, 0), length - 1) });
  onKeys(container, { ArrowLeft: step(-1), ArrowRight: step(1), Home: step(-length), End: step(length) });
  document.getElementById('previous').addEventListener('click', step(-1));
  document.getElementById('next').addEventListener('click', step(1));
  new ResizeObserver(() => shown && show(shown)).observe(container);
  return show;
}

// What can be said of all heads together, as sentences.
function summaryOf() {
  if (characters.length < 2) return [];
  const range = (value) => {
    const least = value(Math.min), most = value(Math.max);
    return least === most ? least : `${least} to ${most}`;
  };
  const nameOfHead = (head) => `layer ${head.layer}, head ${head.head}`;
  const best = (key) => data.heads.reduce((a, b) => (b[key] > a[key] ? b : a));
  const sentences = [];
  for (let layer = 1; layer <= data.layers; ++layer) {
    const heads = data.heads.filter((head) => head.layer === layer);
    const share = range((of) => `${Math.round(100 * of(...heads.map((head) => head.recent_share)))}%`);
    const distance = range((of) => of(...heads.map((head) => head.mean_distance)).toFixed(1));
    sentences.push(`Layer ${layer}: its heads give ${share} of their weight to the character itself and the two before it, and look ${distance} characters back on average.`);
  }
  const previous = best('previous_largest'), space = best('space_largest'), far = best('mean_distance');
  sentences.push(`Most often at the character just before: ${nameOfHead(previous)}, at ${previous.previous_largest} of ${previous.previous_positions} positions.`);
  if (space.space_largest > 0) {
    sentences.push(`Most often at the space before the word: ${nameOfHead(space)}, at ${space.space_largest} of ${space.space_positions} positions inside words.`);
  }
  sentences.push(`Furthest back: ${nameOfHead(far)}, ${far.mean_distance.toFixed(1)} characters on average.`);
  return sentences;
}
