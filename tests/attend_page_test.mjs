// The page of `octavo attend --html` in headless Chromium: every way to use it, its numbers against the command's JSON, hostile texts, and how it
// looks from 360 to 1600 pixels in light and dark. Run by attend_page_test.sh, which sets OCTAVO, MODULES, CHROMIUM and SCREENSHOTS.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const { OCTAVO, MODULES, CHROMIUM, SCREENSHOTS } = process.env;
const { chromium } = createRequire(resolve(MODULES) + '/')('playwright-core');
const TEXT = "The bag didn't fit in the car because it was too small";
const GOLDEN = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, 'data/golden');

const folder = mkdtempSync(join(tmpdir(), 'octavo_page_'));
const octavo = (...flags) => execFileSync(OCTAVO, ['attend', ...flags], { encoding: 'utf8', maxBuffer: 1 << 26 });
const json = JSON.parse(octavo(TEXT, '--format', 'json'));
let browser;

before(async () => {
  // Chromium's own sandbox does not work for root, as CI is; the page is ours.
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

function writePage(name, ...flags) {
  const path = join(folder, `${name}.html`);
  octavo(...flags, '--html', path, '--force', '--quiet');
  return pathToFileURL(path).href;
}
const url = writePage('small', TEXT);

// Opens a page, runs `work` on it; fails for anything on the console and any request but the page itself.
async function withPage(options, work, address = url) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => request.url() === address || complaints.push(`asked for ${request.url()}`));
  await page.goto(address);
  await work(page);
  await context.close();
  assert.deepEqual(complaints, []);
}

const percentOf = (text) => (text === 'under 1%' ? 0 : Number(text.replace('%', '')));
const centerOf = (box) => [box.x + box.width / 2, box.y + box.height / 2];

// ---- the soft lookup ----

const readShares = (page) =>
  page.$$eval('#shares tbody tr', (rows) => Object.fromEntries(rows.map((row) => [row.cells[0].textContent, row.cells[2].textContent])));
async function shares(page) {
  return Object.fromEntries(Object.entries(await readShares(page)).map(([word, text]) => [word, percentOf(text)]));
}
async function planePoint(page, x, y) {
  const box = await page.locator('#plane').boundingBox(), [left, top] = centerOf(box), unit = box.width / 6;
  return [left + x * unit, top - y * unit];
}
const KEYS = { bag: [1.5, 1.0], fit: [-1.4, 0.9], car: [1.2, -1.3], because: [-1.2, -1.2] };

test('the query follows the mouse: pointing at a word raises its share, the middle evens them', () =>
  withPage({}, async (page) => {
    await page.locator('#plane').scrollIntoViewIfNeeded();
    const [tipX, tipY] = centerOf(await page.locator('#plane .handle').boundingBox());
    await page.mouse.move(tipX, tipY);
    await page.mouse.down();
    for (const [word, key] of Object.entries(KEYS)) {
      const earlier = await shares(page);
      await page.mouse.move(...(await planePoint(page, ...key)), { steps: 4 });
      const now = await shares(page);
      assert.ok(now[word] > earlier[word], `${word}: ${earlier[word]} -> ${now[word]}`);
      assert.ok(Object.keys(KEYS).every((other) => now[other] <= now[word]));
      // The numbers are those of the formula.
      const powers = Object.entries(KEYS).map(([name, k]) => [name, Math.exp(k[0] * key[0] + k[1] * key[1])]);
      const total = powers.reduce((sum, [, power]) => sum + power, 0);
      for (const [name, power] of powers) assert.ok(Math.abs(now[name] - (100 * power) / total) <= 1.5, name);
      const words = await page.textContent('#lookup-words');
      assert.ok(words.includes(`“${word}”`) && words.includes(`${word} ${now[word]}%`), words);
    }
    await page.mouse.move(...(await planePoint(page, 0, 0)));
    assert.deepEqual(await readShares(page), { bag: '25%', fit: '25%', car: '25%', because: '25%' });
    assert.match(await page.textContent('#lookup-words'), /very middle/);
    assert.match(await page.textContent('#mix'), /25% of bag's 3 \+ 25% of fit's −2 \+ 25% of car's 8 \+ 25% of because's −6 = 0\.8\./);
    await page.mouse.up();
    await page.mouse.move(...(await planePoint(page, 1, 1)));
    assert.equal((await readShares(page)).bag, '25%', 'it stays where it was let go');
    await page.mouse.click(...(await planePoint(page, 1, 1)));
    assert.ok((await shares(page)).bag > 50, 'a click moves it');
    await page.mouse.click(...(await planePoint(page, 2.9, 2.9)));
    const box = await page.locator('#plane').boundingBox(), handle = centerOf(await page.locator('#plane .handle').boundingBox());
    assert.ok(handle[0] < box.x + box.width && handle[1] > box.y, 'the tip stays inside');
  }));

test('the query follows the arrow keys and the buttons', () =>
  withPage({}, async (page) => {
    await page.focus('#plane');
    await page.keyboard.press('Home');
    assert.deepEqual(await readShares(page), { bag: '25%', fit: '25%', car: '25%', because: '25%' });
    for (const [keys, word] of [[['ArrowRight', 'ArrowUp'], 'bag'], [['ArrowLeft', 'ArrowUp'], 'fit'], [['ArrowRight', 'ArrowDown'], 'car'], [['ArrowLeft', 'ArrowDown'], 'because']]) {
      await page.keyboard.press('Home');
      for (let i = 0; i < 5; ++i) for (const key of keys) await page.keyboard.press(key);
      const found = await shares(page);
      assert.ok(Object.keys(KEYS).every((other) => other === word || found[other] < found[word]), word);
      assert.match(await page.getAttribute('#plane', 'aria-label'), /Query of “small”: −?0\.5 to the right, −?0\.5 up/);
    }
    await page.keyboard.press('Home');
    await page.keyboard.press('Shift+ArrowRight');
    assert.match(await page.getAttribute('#plane', 'aria-label'), /: 0\.5 to the right, 0\.0 up/);
    for (const word of Object.keys(KEYS)) {
      await page.getByRole('button', { name: `At ${word}`, exact: true }).click();
      const found = await shares(page);
      assert.ok(found[word] > 60, `${word} ${found[word]}`);
    }
    await page.getByRole('button', { name: 'To the middle' }).press('Enter');
    assert.equal((await readShares(page)).car, '25%');
  }));

async function touch(page, type, x, y) {
  const session = (page.session ??= await page.context().newCDPSession(page));
  await session.send('Input.dispatchTouchEvent', { type, touchPoints: type === 'touchEnd' ? [] : [{ x, y }] });
}

test('a finger drags the query, and taps characters and rows', () =>
  withPage({ viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true }, async (page) => {
    await page.locator('#plane').scrollIntoViewIfNeeded();
    const scrolled = await page.evaluate(() => scrollY);
    await touch(page, 'touchStart', ...centerOf(await page.locator('#plane .handle').boundingBox()));
    for (const share of [0.3, 0.6, 1]) await touch(page, 'touchMove', ...(await planePoint(page, -1.4 * share, 0.9 * share)));
    await touch(page, 'touchEnd');
    assert.ok((await shares(page)).fit > 60, JSON.stringify(await shares(page)));
    assert.equal(await page.evaluate(() => scrollY), scrolled, 'the page stays where it is');
    await page.touchscreen.tap(...(await planePoint(page, -1.2, -1.2)));
    assert.ok((await shares(page)).because > 60);

    await page.locator('#triangle').scrollIntoViewIfNeeded();
    const [x, y] = centerOf(await page.locator('#triangle rect[data-row="20"][data-column="20"]').boundingBox());
    await page.touchscreen.tap(x, y);
    assert.match(await page.textContent('#row-words'), /^Character 21 of 54/);
    await page.locator('#next').tap();
    assert.match(await page.textContent('#chosen'), /^Character 22 of 54/);
    const letter = page.locator('.head').first().locator('svg text').nth(4);
    await letter.tap();
    assert.doesNotMatch(await page.textContent('#chosen'), /^Character 22 of 54/);
  }));

// ---- the triangle ----

// "itself 49%, “l” just before 19%, …" as position -> percent.
function readWords(words, t) {
  const found = {};
  for (const [, name, back, share] of words.matchAll(/(itself|just before|(\d+) back) (\d+%|under 1%)/g)) {
    found[name === 'itself' ? t : name === 'just before' ? t - 1 : t - Number(back)] = percentOf(share);
  }
  return found;
}

function assertWords(words, row) {
  const found = readWords(words, row.length - 1);
  const largest = Math.max(...row);
  if (row.length > 1) assert.ok(Object.keys(found).some((s) => row[s] === largest), words);
  for (const [s, share] of Object.entries(found)) assert.equal(share, Math.round(100 * row[s]), `${words} at ${s}`);
}

test('a square has the area of its weight, on every head, and there is none above the diagonal', () =>
  withPage({}, async (page) => {
    for (const head of json.heads) {
      await page.selectOption('#layer', String(head.layer));
      await page.selectOption('#head', String(head.head));
      const squares = await page.$$eval('#triangle .weight', (all) =>
        all.map((square) => ['data-row', 'data-column', 'x', 'y', 'width', 'height'].map((name) => Number(square.getAttribute(name)))));
      const [, , x0, , w0] = squares[0]; // of the first character, which reads itself: 100%
      const cell = w0;
      let drawn = 0;
      for (const [t, s, x, y, width, height] of squares) {
        assert.ok(s <= t);
        assert.ok(Math.abs((width * height) / (cell * cell) - head.weights[t][s]) <= 1e-9);
        assert.ok(Math.abs(x + width / 2 - (x0 + (s + 0.5) * cell)) <= 1e-9, 'in its column');
        assert.ok(Math.abs(y + height / 2 - (squares[0][3] + (t + 0.5) * cell)) <= 1e-9, 'in its row');
        drawn += head.weights[t][s];
      }
      assert.ok(Math.abs(drawn - TEXT.length) < 0.2, `nearly all weight is drawn: ${drawn}`);
    }
  }));

test('rows are read by mouse, keys and buttons', () =>
  withPage({}, async (page) => {
    const rowOf = async (layer, head, t) => assertWords(await page.textContent('#row-words'), json.heads[(layer - 1) * 4 + head - 1].weights[t]);
    const place = async () => Number(/^Character (\d+)/.exec(await page.textContent('#row-words'))[1]) - 1;
    assert.equal(await place(), 53);
    for (const t of [5, 17, 40]) {
      const square = page.locator(`#triangle rect[data-row="${t}"][data-column="${t}"]`);
      await square.scrollIntoViewIfNeeded();
      const [x, y] = centerOf(await square.boundingBox());
      await page.mouse.move(x, y);
      assert.equal(await place(), t);
      await rowOf(1, 1, t);
    }
    await page.focus('#triangle');
    for (const [key, t] of [['ArrowUp', 39], ['ArrowUp', 38], ['ArrowDown', 39], ['Home', 0], ['ArrowUp', 0], ['End', 53], ['ArrowDown', 53]]) {
      await page.keyboard.press(key);
      assert.equal(await place(), t, key);
      await rowOf(1, 1, t);
    }
    await page.click('#up');
    assert.equal(await place(), 52);
    await page.click('#down');
    assert.equal(await place(), 53);
    await page.selectOption('#layer', '2');
    await page.selectOption('#head', '2');
    await rowOf(2, 2, 53);
    assert.match(await page.getAttribute('#triangle', 'aria-label'), /Layer 2, head 2, row 54/);
    assert.match(await page.textContent('#chosen'), /^Character 54 of 54: “l”, in “small”$/, 'the heads follow');
  }));

test('--layer and --head choose what the page opens with', () =>
  withPage({}, async (page) => {
    assert.equal(await page.inputValue('#layer'), '2');
    assert.equal(await page.inputValue('#head'), '3');
    assertWords(await page.textContent('#row-words'), json.heads[6].weights[53]);
  }, writePage('chosen', TEXT, '--layer', '2', '--head', '3')));

// ---- the heads ----

test('each head has its statistics, its row in words, and darker arcs for more', () =>
  withPage({}, async (page) => {
    const cards = page.locator('.head');
    assert.equal(await cards.count(), json.heads.length);
    await cards.first().scrollIntoViewIfNeeded();
    for (const t of [53, 31]) {
      for (const [i, head] of json.heads.entries()) {
        const card = cards.nth(i);
        assert.equal(await card.locator('h3').textContent(), `Layer ${head.layer}, head ${head.head}`);
        assert.deepEqual(await card.locator('dd').allTextContents(), [
          `${head.previous_largest} of ${head.previous_positions}`,
          `${head.space_largest} of ${head.space_positions}`,
          `${(100 * head.recent_share).toFixed(1)}%`,
          head.mean_distance.toFixed(1),
        ]);
        assertWords(await card.locator('.reads').textContent(), head.weights[t]);
        const arcs = await card.locator('.arc').evaluateAll((all) =>
          all.map((arc) => [Number(arc.dataset.column), Number(arc.getAttribute('stroke-opacity')), arc.tagName]));
        assert.deepEqual(arcs.map(([s]) => s), [...head.weights[t].keys()].filter((s) => head.weights[t][s] >= 0.01));
        for (const [s, opacity, tag] of arcs) {
          assert.equal(tag, s === t ? 'circle' : 'path');
          for (const [other, less] of arcs) assert.ok(head.weights[t][other] >= head.weights[t][s] || less < opacity);
        }
      }
      await page.mouse.move(...centerOf(await cards.first().locator('svg text').nth(31).boundingBox()));
    }
  }));

test('left and right and the buttons move the chosen character', () =>
  withPage({}, async (page) => {
    const place = async () => Number(/^Character (\d+)/.exec(await page.textContent('#chosen'))[1]) - 1;
    await page.focus('#heads');
    for (const [key, t] of [['ArrowLeft', 52], ['ArrowLeft', 51], ['ArrowRight', 52], ['End', 53], ['ArrowRight', 53], ['Home', 0], ['ArrowLeft', 0]]) {
      await page.keyboard.press(key);
      assert.equal(await place(), t, key);
    }
    await page.click('#next');
    assert.equal(await place(), 1);
    await page.click('#previous');
    assert.equal(await place(), 0);
    assert.match(await page.textContent('#row-words'), /^Character 1 of 54: “T”, in “The”. It reads itself, 100%: there is nothing before it\.$/);
  }));

test('the sentences about all heads are those of the numbers', () =>
  withPage({}, async (page) => {
    const summary = (await page.locator('#summary li').allTextContents()).join('\n');
    const best = (key) => json.heads.reduce((a, b) => (b[key] > a[key] ? b : a));
    for (const [key, positions] of [['previous_largest', 'previous_positions'], ['space_largest', 'space_positions']]) {
      const head = best(key);
      assert.ok(summary.includes(`layer ${head.layer}, head ${head.head}, at ${head[key]} of ${head[positions]} positions`), summary);
    }
    const far = best('mean_distance');
    assert.ok(summary.includes(`Furthest back: layer ${far.layer}, head ${far.head}, ${far.mean_distance.toFixed(1)} characters`), summary);
  }));

// ---- texts ----

// A golden model with other characters in its vocabulary.
function writeModel(characters) {
  const bytes = readFileSync(join(GOLDEN, 's4.safetensors')), end = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, end));
  header.__metadata__.vocabulary = JSON.stringify(characters);
  delete header.__metadata__.start;
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const path = join(folder, 'hostile.safetensors');
  writeFileSync(path, Buffer.concat([length, text, bytes.subarray(end)]));
  return path;
}

test('hostile characters are shown as what they are', async () => {
  const text = '</script>😀"\x01', model = writeModel(['<', '/', 's', 'c', 'r', 'i', 'p', 't', '>', '😀', '"', '\x01']);
  await withPage({}, async (page) => {
    assert.equal(await page.textContent('#text'), '</script>😀"␁');
    assert.equal(await page.locator('script').count(), 2);
    assert.equal(await page.locator('#triangle .row').count(), 12);
    assert.deepEqual(await page.locator('#triangle .column').allTextContents(), [...'</script>😀"␁']);
    assert.match(await page.textContent('#row-words'), /^Character 12 of 12: U\+0001, in/);
    await page.focus('#triangle');
    await page.keyboard.press('ArrowUp');
    assert.match(await page.textContent('#row-words'), /^Character 11 of 12: “"”, in “<\/script>😀"␁”\. It reads /);
  }, writePage('hostile', text, '--model', model));
  await withPage({}, async (page) => {
    assert.match(await page.textContent('#row-words'), /^Character 33 of 33: “n”, in “again”/);
    assert.deepEqual((await page.locator('#triangle .column').allTextContents()).slice(16, 28), ['⇥', 'X', '\\', 'Y', '□', '😀', '␣', 'a', 'n', 'd', '␁', '⏎']);
  }, writePage('modd', 'One "café" for €\tX\\Y\u2028😀 and\x01\nagain', '--model', join(GOLDEN, 'modd')));
});

test('one character alone has a page', () =>
  withPage({}, async (page) => {
    assert.match(await page.textContent('#row-words'), /reads itself, 100%/);
    assert.deepEqual(await page.locator('.head').first().locator('dd').allTextContents(), ['0 of 0', '0 of 0', '–', '–']);
  }, writePage('one', 'a')));

// ---- how it looks ----

// Pairs of texts that lie over each other, texts that stick out of the page, and the least contrast of a text with what is behind it.
function inspect() {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const parse = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  let contrast = 21;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest('script, style, option')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const style = getComputedStyle(parent), isSvg = parent instanceof SVGElement;
    const [a, b] = [luminance(parse(isSvg ? style.fill : style.color)), luminance(behind(parent))].sort((x, y) => y - x);
    contrast = Math.min(contrast, (a + 0.05) / (b + 0.05));
    // Of an SVG text the box has room for accents above and below the ink: letters of neighbouring rows may share that.
    for (const rect of range.getClientRects()) {
      const spare = isSvg ? 0.2 * rect.height : 0.12 * rect.height;
      boxes.push({ text: node.textContent.trim().slice(0, 20), left: rect.left + 0.5, right: rect.right - 0.5, top: rect.top + spare, bottom: rect.bottom - spare });
    }
  }
  const overlaps = [];
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; ++j) {
      const b = boxes[j];
      if (a.left < b.right && b.left < a.right) overlaps.push(`${a.text} | ${b.text}`);
    }
  });
  const outside = boxes.filter(({ left, right }) => left < 0 || right > innerWidth).map(({ text }) => text);
  return { overlaps, outside, contrast, width: document.documentElement.scrollWidth, numTexts: boxes.length };
}

for (const width of [360, 400, 768, 1200, 1600]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`at ${width} pixels in ${colorScheme} nothing overlaps or sticks out, and all texts stand out`, () =>
      withPage({ viewport: { width, height: 900 }, colorScheme }, async (page) => {
        const check = async (what) => {
          const found = await page.evaluate(inspect);
          assert.ok(found.numTexts > 100);
          assert.deepEqual(found.overlaps, [], what);
          assert.deepEqual(found.outside, [], what);
          assert.ok(found.width <= width, `${what}: ${found.width} wide`);
          assert.ok(found.contrast >= 4.5, `${what}: contrast ${found.contrast}`);
        };
        await check('as it opens');
        if (width === 400 || width === 1200) await page.screenshot({ path: join(SCREENSHOTS, `${width}-${colorScheme}.png`), fullPage: true });
        for (const word of Object.keys(KEYS)) {
          await page.getByRole('button', { name: `At ${word}`, exact: true }).click();
          await check(`at ${word}`);
        }
        await page.getByRole('button', { name: 'To the middle' }).click();
        await page.focus('#heads');
        await page.keyboard.press('Home');
        await check('at the first character');
      }));
  }
}

// For tools/attend/example/.
test('pictures of the parts are taken', () =>
  withPage({}, async (page) => {
    await page.locator('.lookup').screenshot({ path: join(SCREENSHOTS, 'lookup.png') });
    await page.focus('#heads');
    for (let i = 0; i < 17; ++i) await page.keyboard.press('ArrowLeft');
    assert.equal(await page.textContent('#chosen'), 'Character 37 of 54: “e”, in “because”');
    await page.evaluate(() => document.activeElement.blur());
    await page.locator('#heads').screenshot({ path: join(SCREENSHOTS, 'heads.png') });
  }));

test('the light and the dark page differ, and motion is left out where it is not wanted', async () => {
  const grounds = [];
  for (const colorScheme of ['light', 'dark']) {
    await withPage({ colorScheme }, async (page) => grounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)));
  }
  assert.notEqual(grounds[0], grounds[1]);
  const transition = (page) => page.$eval('#shares .bar div', (bar) => getComputedStyle(bar).transitionProperty);
  await withPage({ reducedMotion: 'reduce' }, async (page) => assert.equal(await transition(page), 'none'));
  await withPage({ reducedMotion: 'no-preference' }, async (page) => assert.equal(await transition(page), 'width'));
});

test('everything that can be used has a name, and can be reached by the keyboard', () =>
  withPage({}, async (page) => {
    const reached = [];
    for (let i = 0; i < 16; ++i) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
    }
    for (const wanted of ['plane', 'At bag', 'To the middle', 'layer', 'head', 'up', 'down', 'triangle', 'previous', 'next', 'heads']) {
      assert.ok(reached.includes(wanted), `${wanted} among ${reached}`);
    }
    const nameless = await page.$$eval('button, select, [tabindex]', (all) =>
      all.filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.length || e.textContent.trim())).map((e) => e.id));
    assert.deepEqual(nameless, []);
    for (const id of ['lookup-words', 'row-words', 'chosen']) assert.equal(await page.getAttribute(`#${id}`, 'aria-live'), 'polite');
  }));
