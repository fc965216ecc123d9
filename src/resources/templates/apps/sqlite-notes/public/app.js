const $ = (id) => document.getElementById(id)
const list = $('list')
const title = $('title')
const body = $('body')
const pinned = $('pinned')
const status = $('status')

/** Id of the note in the editor; null for one that is not saved yet. */
let current = null
/** Whether the editor holds what was not saved. */
let dirty = false
/** Counted up when another note comes into the editor, and when its text changes. */
let shown = 0
let edits = 0
let saving = false

/** Calls the API. @throws Error with a sentence for the person at the page */
async function api(method, path = '', fields) {
  const init = { method, headers: { 'content-type': 'application/json' } }
  if (fields) init.body = JSON.stringify(fields)
  const response = await fetch(`/api/notes${path}`, init).catch(() => {
    throw new Error('The app does not answer. Your text is still here.')
  })
  const answer = response.status === 204 ? null : await response.json().catch(() => null)
  if (!response.ok) throw new Error(answer?.message ?? `The app answered ${response.status}.`)
  return answer
}

function say(text, failed = false) {
  status.textContent = text
  status.classList.toggle('failed', failed)
}

/** Runs what a button does and shows what went wrong. */
const attempt = (action) => async (event) => {
  event?.preventDefault()
  try {
    await action()
  } catch (error) {
    say(error.message, true)
  }
}

/** An element with text, never with HTML: notes are other people's words. */
function element(name, text, className) {
  const made = document.createElement(name)
  made.textContent = text
  if (className) made.className = className
  return made
}

const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

function item(note) {
  const button = element('button', '')
  button.type = 'button'
  button.ariaCurrent = String(note.id === current)
  const heading = element('strong', note.title)
  if (note.pinned) {
    const pin = element('span', '● ', 'pin')
    pin.role = 'img'
    pin.ariaLabel = 'Pinned'
    heading.prepend(pin)
  }
  button.append(heading, element('small', date.format(note.updated_at)))
  button.addEventListener('click', () => show(note))
  const entry = element('li', '')
  entry.append(button)
  return entry
}

let asked = 0
async function refresh() {
  const turn = ++asked
  const search = $('search').value.trim()
  const { notes } = await api('GET', search ? `?search=${encodeURIComponent(search)}` : '')
  // A later search was answered already.
  if (turn !== asked) return
  list.replaceChildren(...notes.map(item))
  $('empty').hidden = notes.length > 0
  $('empty').textContent = search ? 'No note contains that.' : 'No notes yet.'
}

/** Puts a note into the editor, or an empty one. */
function show(note) {
  if (dirty && !confirm('Leave this note without saving it?')) return
  shown += 1
  current = note?.id ?? null
  title.value = note?.title ?? ''
  body.value = note?.body ?? ''
  pinned.checked = note?.pinned ?? false
  dirty = false
  $('delete').hidden = current === null
  say('')
  for (const button of list.querySelectorAll('button')) button.ariaCurrent = 'false'
  attempt(refresh)()
  if (current === null) title.focus()
}

const save = attempt(async () => {
  if (saving) return
  saving = true
  const at = { shown, edits }
  const fields = {
    title: title.value.trim() || body.value.trim().split('\n')[0].slice(0, 60) || 'Untitled',
    body: body.value,
    pinned: pinned.checked,
  }
  try {
    const note = current === null ? await api('POST', '', fields) : await api('PATCH', `/${current}`, fields)
    if (at.shown === shown) {
      current = note.id
      $('delete').hidden = false
      // Whoever typed on in the meantime has something to save still.
      if (at.edits === edits) {
        title.value = note.title
        dirty = false
        say('Saved')
      }
    }
  } finally {
    saving = false
  }
  await refresh()
})

const remove = attempt(async () => {
  if (!confirm('Delete this note for good?')) return
  await api('DELETE', `/${current}`)
  dirty = false
  show(null)
})

$('editor').addEventListener('submit', save)
$('editor').addEventListener('input', () => {
  edits += 1
  dirty = true
  say('Not saved')
})
$('delete').addEventListener('click', remove)
$('new').addEventListener('click', () => show(null))
$('search').addEventListener('input', attempt(refresh))
addEventListener('keydown', (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === 's') save(event)
})
addEventListener('beforeunload', (event) => {
  if (dirty) event.preventDefault()
})

attempt(refresh)()
