const $ = (id) => document.getElementById(id)
const COUNTS = ['words', 'characters', 'sentences', 'paragraphs', 'words_per_sentence']
const PAUSE_MS = 150

const number = new Intl.NumberFormat()
const duration = (seconds) => {
  const minutes = Math.floor(seconds / 60)
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`
}

/** @throws Error with a sentence for the person at the page */
async function analyze(text, signal) {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
    signal,
  }
  const response = await fetch('/api/analyze', init).catch((error) => {
    if (signal.aborted) throw error
    throw new Error('The app does not answer. Type on to try again.')
  })
  const answer = await response.json().catch(() => null)
  if (!response.ok || answer === null)
    throw new Error(answer?.message ?? `The app answered ${response.status}.`)
  return answer
}

function show(result) {
  for (const name of COUNTS) $(name).textContent = number.format(result[name])
  $('reading').textContent = duration(result.reading_seconds)
  const most = result.frequent[0]?.count ?? 1
  $('frequent').replaceChildren(
    ...result.frequent.map(({ word, count }) => {
      const entry = document.createElement('li')
      const name = document.createElement('span')
      const times = document.createElement('span')
      name.textContent = word
      times.textContent = number.format(count)
      entry.style.setProperty('--share', `${(count / most) * 100}%`)
      entry.append(name, times)
      return entry
    }),
  )
  $('status').textContent =
    result.words > 0 && !result.frequent.length ? 'No word is longer than three letters.' : ''
}

let asking = new AbortController()
let timer

function update() {
  clearTimeout(timer)
  // A later text makes the answer about an earlier one worthless.
  asking.abort()
  asking = new AbortController()
  const { signal } = asking
  timer = setTimeout(async () => {
    try {
      show(await analyze($('text').value, signal))
    } catch (error) {
      if (!signal.aborted) $('status').textContent = error.message
    }
  }, PAUSE_MS)
}

$('text').addEventListener('input', update)
// Some browsers keep the text when the page is loaded again.
if ($('text').value) update()
$('text').focus()
