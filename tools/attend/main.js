// Fills in what the page says of its text, and ties the parts together: one character and one head are chosen for all of them.

document.getElementById('model').textContent = data.model;
document.getElementById('text').textContent = characters.map((c) => (isControl(c) && !/[ \n\t]/.test(c) ? markOf(c) : c)).join('');
document.getElementById('counts').textContent =
  `This model has ${data.layers} layer${data.layers === 1 ? '' : 's'} of ${data.heads_per_layer} head${data.heads_per_layer === 1 ? '' : 's'} each; ` +
  'layer 1 reads the characters themselves, a later layer what the one before made of them.';
for (const sentence of summaryOf()) document.getElementById('summary').append(htmlElement('li', { textContent: sentence }));

startSoftLookup();
const state = {
  position: characters.length - 1,
  layer: Number(document.getElementById('layer').dataset.first),
  head: Number(document.getElementById('head').dataset.first),
};
const shows = [];
function choose(change) {
  const isSame = Object.keys(change).every((key) => state[key] === change[key]);
  if (isSame) return;
  Object.assign(state, change);
  for (const show of shows) show(state);
}
shows.push(makeTriangle(choose), makeHeads(choose));
for (const show of shows) show(state);
