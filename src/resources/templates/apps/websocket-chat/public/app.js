import { Connection } from './connection.js'

const MAX_TEXT = 500

const $ = (id) => document.getElementById(id)
const log = $('log')
const text = $('text')

/** Who this page is and where, once it joined; null at the door. */
let joined = null
/** Id of this page's connection, which changes when it was lost. */
const ownIds = new Set()
/** Ids of the messages that are shown: after a lost connection they come again. */
const seen = new Set()
let connection = null

/** An element with text, never with HTML: names and messages are other people's words. */
function element(name, content, className) {
  const made = document.createElement(name)
  made.textContent = content
  if (className) made.className = className
  return made
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
/** A colour of its own for each name. */
const hue = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7)

function showMessage({ id, from, text: words, at }) {
  if (seen.has(id)) return
  seen.add(id)
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80
  const entry = element('li', '', ownIds.has(from.id) ? 'own' : '')
  const head = element('p', '', 'head')
  const name = element('strong', from.name)
  name.style.setProperty('--hue', hue(from.name))
  const time = element('time', clock.format(at))
  time.dateTime = new Date(at).toISOString()
  head.append(name, time)
  entry.append(head, element('p', words, 'words'))
  log.append(entry)
  // Who reads further up is left there.
  if (atEnd) log.scrollTop = log.scrollHeight
}

function showPeople(people) {
  $('count').textContent = people.length
  $('people').replaceChildren(
    ...people.map(({ id, name }) => {
      const entry = element('li', ownIds.has(id) ? `${name} (you)` : name)
      entry.style.setProperty('--hue', hue(name))
      return entry
    }),
  )
}

function say(status, failed = false) {
  $('status').textContent = status
  $('status').classList.toggle('failed', failed)
}

function welcome({ room, you, people, history }) {
  ownIds.add(you.id)
  $('door').hidden = true
  $('chat').hidden = false
  $('heading').textContent = `# ${room}`
  document.title = `#${room} · Chat`
  location.hash = room
  $('composer').classList.remove('away')
  say('Connected')
  showPeople(people)
  history.forEach(showMessage)
  log.scrollTop = log.scrollHeight
  text.focus()
}

function refused({ reason }) {
  if ($('chat').hidden) leave(reason)
  else say(reason, true)
}

const handlers = {
  welcome,
  refused,
  people: ({ people }) => showPeople(people),
  message: ({ message }) => showMessage(message),
}

function join(room, name) {
  joined = { type: 'join', room, name }
  connection = new Connection()
  connection.addEventListener('open', () => connection.send(joined))
  connection.addEventListener('message', ({ detail }) => handlers[detail.type]?.(detail))
  connection.addEventListener('lost', () => {
    $('composer').classList.add('away')
    say('Connection lost. Trying again…', true)
    $('door-status').textContent = $('chat').hidden ? 'The chat does not answer. Trying again…' : ''
  })
  connection.open()
}

/** Back to the door, with a reason where there is one. */
function leave(reason = '') {
  connection?.close()
  connection = null
  joined = null
  seen.clear()
  log.replaceChildren()
  document.title = 'Chat'
  $('chat').hidden = true
  $('door').hidden = false
  $('door-status').textContent = reason
}

function send() {
  const words = text.value.trim()
  if (words === '') return
  if (!connection?.send({ type: 'say', text: words })) return
  say('Connected')
  text.value = ''
  resize()
}

/** Lets the field grow with its text, and counts near the limit. */
function resize() {
  text.style.height = 'auto'
  text.style.height = `${text.scrollHeight}px`
  const left = MAX_TEXT - text.value.length
  $('left').textContent = left <= 50 ? left : ''
}

$('door').addEventListener('submit', (event) => {
  event.preventDefault()
  if (connection) return
  remember($('name').value)
  join($('room').value, $('name').value)
})
$('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  send()
})
text.addEventListener('input', resize)
text.addEventListener('keydown', (event) => {
  // While an input method composes a word, Enter ends the word.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  send()
})
$('leave').addEventListener('click', () => leave())

// Storage throws where the visitor has switched it off: the name is then asked for again.
function remember(name) {
  try {
    localStorage.setItem('name', name)
  } catch {}
}
function remembered() {
  try {
    return localStorage.getItem('name') ?? ''
  } catch {
    return ''
  }
}

$('name').value = remembered()
$('room').value = /^#[A-Za-z0-9-]{1,32}$/.test(location.hash) ? location.hash.slice(1) : 'lobby'
;($('name').value ? $('room') : $('name')).focus()
