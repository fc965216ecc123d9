/*
 * The script of a reference's page: search, the sample that is shown, copying, the place in the contents, and sending a
 * request. Without it the page has all that there is to read. Everything it adds is text, never markup.
 */

/** Characters of a response that are shown. */
const SHOWN = 200_000

/** Key of the browser's storage under which the kind of sample is kept. */
const SAMPLE_KEY = 'berth.sample'

/**
 * Returns the only element of a kind.
 *
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {HTMLElement}
 */
function only(selector, within = document) {
  const found = within.querySelector(selector)
  if (!(found instanceof HTMLElement)) throw new Error(`The page has no ${selector}.`)
  return found
}

/**
 * Makes an element.
 *
 * @param {string} name
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
function element(name, attributes, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/* Search. */

const search = /** @type {HTMLInputElement} */ (only('#q'))
const found = only('#found')
const list = /** @type {HTMLDetailsElement} */ (only('.contents details'))
const groups = [...list.querySelectorAll(':scope > ul > li')]

/** The entries of the contents, each with what it leads to. */
const entries = [...list.querySelectorAll('ul ul a')].map((link) => {
  const section = document.getElementById((link.getAttribute('href') ?? '').slice(1))
  return { link, section, item: /** @type {HTMLElement} */ (link.parentElement), text: '', fields: [''] }
})

/** Reads what can be found, at the first search. */
function readEntries() {
  for (const entry of entries) {
    if (entry.text !== '' || entry.section === null) continue
    entry.text = `${entry.section.id} ${entry.link.textContent} ${entry.section.textContent}`.toLowerCase()
    const names = entry.section.querySelectorAll('.field')
    entry.fields = [...new Set([...names].map((name) => name.textContent ?? ''))]
  }
}

/** Shows only the entries that have all of the words, with the fields that are meant. */
function showFound() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length > 0) readEntries()
  let count = 0
  for (const { link, item, text, fields } of entries) {
    const isFound = words.every((word) => text.includes(word))
    item.hidden = !isFound
    count += isFound ? 1 : 0
    link.querySelector('.hits')?.remove()
    const hits = words.length > 0 && isFound ? fields.filter((name) => hasOne(name, words)) : []
    if (hits.length > 0) link.append(element('span', { class: 'hits' }, hits.slice(0, 6).join(', ')))
  }
  for (const group of groups) {
    const own = [...group.querySelectorAll('li')]
    if (group instanceof HTMLElement) group.hidden = words.length > 0 && own.every(({ hidden }) => hidden)
  }
  found.textContent = words.length === 0 ? '' : count === 1 ? '1 found' : `${count} found`
  if (words.length > 0) list.open = true
}

/**
 * @param {string} name
 * @param {string[]} words
 */
const hasOne = (name, words) => words.some((word) => name.toLowerCase().includes(word))

search.addEventListener('input', showFound)
search.form?.addEventListener('submit', (event) => {
  event.preventDefault()
  const first = entries.find(({ item }) => !item.hidden)
  if (first && search.value.trim() !== '' && first.link instanceof HTMLElement) {
    first.link.click()
    first.link.focus()
  }
})
search.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return
  search.value = ''
  showFound()
})
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select') !== null
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  event.preventDefault()
  search.focus()
})

/* The place in the contents. On a narrow screen they cover the page, so they close when one is chosen. */

const isNarrow = matchMedia('(max-width: 64rem)')
list.addEventListener('click', (event) => {
  if (event.target instanceof Element && event.target.closest('a') && isNarrow.matches) list.open = false
})
const links = new Map(entries.map(({ link, section }) => [section, link]))
const watch = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) {
      const link = links.get(/** @type {HTMLElement} */ (target))
      if (!link) continue
      if (!isIntersecting) link.removeAttribute('aria-current')
      else {
        link.setAttribute('aria-current', 'location')
        if (!isNarrow.matches && !list.matches(':hover, :focus-within'))
          link.scrollIntoView({ block: 'nearest' })
      }
    }
  },
  { rootMargin: '-15% 0px -84% 0px' },
)
for (const { section } of entries) if (section) watch.observe(section)

/* Operations are folded: the one that the address names is open. */

/** Opens what the address names. */
function openTarget() {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  const fold = section?.querySelector(':scope > details')
  if (fold instanceof HTMLDetailsElement) fold.open = true
}
addEventListener('hashchange', openTarget)
openTarget()
list.addEventListener('click', ({ target }) => {
  // The address may name it already.
  if (target instanceof Element && target.closest('a')) setTimeout(openTarget)
})
document.addEventListener('click', ({ target }) => {
  const summary = target instanceof Element ? target.closest('.operation > details > summary') : null
  const section = summary?.closest('.operation')
  // Open still is what it was before the click.
  if (section && !summary?.parentElement?.hasAttribute('open'))
    history.replaceState(null, '', `#${section.id}`)
})

/* Samples: a kind that is chosen once is shown everywhere. */

/** @param {string} kind */
function showSamples(kind) {
  for (const input of document.querySelectorAll('.tabs input')) {
    if (input instanceof HTMLInputElement && input.value === kind) input.checked = true
  }
}
try {
  const kept = localStorage.getItem(SAMPLE_KEY)
  if (kept !== null) showSamples(kept)
} catch {
  // The browser keeps nothing. Each visit then begins with the first kind.
}
document.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !target.matches('.tabs input')) return
  const before = target.getBoundingClientRect().top
  showSamples(target.value)
  scrollBy({ top: target.getBoundingClientRect().top - before, behavior: 'instant' })
  try {
    localStorage.setItem(SAMPLE_KEY, target.value)
  } catch {
    // See above.
  }
})

/* Copying and trying. */

only('.credential').addEventListener('submit', (event) => event.preventDefault())

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null
  if (button === null) return
  if (button.matches('.copy')) void copy(button)
  if (button.matches('.try')) openForm(button)
})

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const text = only('pre', /** @type {ParentNode} */ (button.parentElement)).textContent ?? ''
  const isCopied = await copyText(text)
  const label = button.firstChild
  if (label === null) return
  label.textContent = isCopied ? 'Copied' : 'Select it to copy'
  setTimeout(() => {
    label.textContent = 'Copy'
  }, 1_500)
}

/**
 * Browsers give the clipboard only to pages of this machine or with TLS; the older way works for others.
 *
 * @param {string} text
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = /** @type {HTMLTextAreaElement} */ (element('textarea', { readonly: '' }))
    area.value = text
    document.body.append(area)
    area.select()
    const isCopied = document.execCommand('copy')
    area.remove()
    return isCopied
  }
}

/**
 * Opens the form that sends a request, or closes it.
 *
 * @param {HTMLButtonElement} button
 */
function openForm(button) {
  const section = /** @type {HTMLElement} */ (button.closest('.operation'))
  const open = section.querySelector('form.request')
  button.setAttribute('aria-expanded', String(open === null))
  if (open) {
    open.remove()
    return
  }
  const { body, takes } = section.dataset
  const parameters = [...section.querySelectorAll('[data-in]')].map((item) => ({
    name: only('.field', item).textContent ?? '',
    place: item.getAttribute('data-in') ?? '',
    isRequired: item.querySelector(':scope > .required') !== null,
  }))
  const form = /** @type {HTMLFormElement} */ (
    element('form', { class: 'request', 'aria-label': `Try ${section.id}` })
  )
  for (const { name, place, isRequired } of parameters) {
    const id = `try-${section.id}-${name}`
    const input = element('input', {
      type: 'text',
      id,
      name,
      'data-place': place,
      autocomplete: 'off',
      spellcheck: 'false',
    })
    if (isRequired) input.setAttribute('required', '')
    form.append(
      element(
        'label',
        { for: id },
        `${name} `,
        element('span', { class: 'type' }, isRequired ? place : `${place}, may be missing`),
      ),
      input,
    )
  }
  if (body !== undefined) {
    const id = `try-${section.id}`
    const area = element('textarea', {
      id,
      name: 'body',
      rows: String(Math.min(16, body.split('\n').length + 1)),
      spellcheck: 'false',
    })
    area.textContent = body
    form.append(element('label', { for: id }, 'Body'), area)
  } else if (takes !== undefined) {
    const id = `try-${section.id}`
    form.append(
      element('label', { for: id }, 'File to send'),
      element('input', { type: 'file', id, name: 'file' }),
    )
  }
  const output = element('div', { class: 'response', 'aria-live': 'polite' })
  form.append(
    element(
      'p',
      { class: 'actions' },
      element('button', {}, 'Send'),
      element('button', { type: 'button', class: 'plain stop', hidden: '' }, 'Stop'),
    ),
    output,
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void send(section, form)
  })
  button.parentElement?.after(form)
  const first = form.querySelector('input, textarea, button')
  if (first instanceof HTMLElement) first.focus()
}

/**
 * Builds the request of a form.
 *
 * @param {HTMLElement} section
 * @param {HTMLFormElement} form
 */
function requestOf(section, form) {
  const { method = 'GET', path = '', takes } = section.dataset
  const inputs = [...form.querySelectorAll('input[data-place]')].filter(
    (one) => one instanceof HTMLInputElement,
  )
  const of = (/** @type {string} */ place) =>
    inputs.filter((one) => one.dataset.place === place && one.value !== '')
  const values = new Map(of('path').map(({ name, value }) => [name, value]))
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values.get(name) ?? ''))
  const query = new URLSearchParams(of('query').map(({ name, value }) => [name, value])).toString()
  const headers = new Headers(of('header').map(({ name, value }) => [name, value]))
  const credential = /** @type {HTMLInputElement} */ (only('#credential')).value.trim()
  const { csrf } = only('.credential').dataset
  if (credential !== '') headers.set('Authorization', `Bearer ${credential}`)
  else if (csrf !== undefined) {
    headers.set('x-berth-csrf', csrf)
    headers.set('x-berth-client', 'dashboard')
  }
  /** @type {BodyInit | undefined} */
  let body
  const area = form.querySelector('textarea')
  const file = form.querySelector('input[type=file]')
  if (area && area.value.trim() !== '') {
    headers.set('Content-Type', 'application/json')
    body = area.value
  } else if (file instanceof HTMLInputElement) {
    if (takes !== undefined) headers.set('Content-Type', takes)
    body = file.files?.[0]
  }
  // Without a key the session alone must not count, so the cookie stays here.
  const credentials = credential === '' && csrf !== undefined ? 'same-origin' : 'omit'
  const url = query === '' ? filled : `${filled}?${query}`
  return new Request(url, { method, headers, body: body ?? null, credentials, cache: 'no-store' })
}

/**
 * Sends the request of a form and shows the response as it comes.
 *
 * @param {HTMLElement} section
 * @param {HTMLFormElement} form
 */
async function send(section, form) {
  const { method = '', path = '' } = section.dataset
  if (
    (method === 'DELETE' || /\/(reset|restore)$/.test(path)) &&
    !confirm(`Send ${method} ${path} to this instance?`)
  )
    return
  const output = only('.response', form)
  const stop = only('.stop', form)
  const ending = new AbortController()
  stop.hidden = false
  stop.onclick = () => ending.abort()
  output.replaceChildren(element('p', { class: 'quiet' }, 'Sent …'))
  const started = performance.now()
  try {
    const response = await fetch(requestOf(section, form), { signal: ending.signal })
    const ms = Math.round(performance.now() - started)
    const text = element('pre', { tabindex: '0' })
    output.replaceChildren(
      element(
        'p',
        {},
        element('span', { class: response.ok ? 'status ok' : 'status' }, String(response.status)),
        ` ${response.statusText} in ${ms} ms `,
        element('span', { class: 'type' }, response.headers.get('content-type') ?? ''),
      ),
      text,
    )
    await readInto(text, response)
  } catch (error) {
    const why = ending.signal.aborted
      ? 'Stopped.'
      : `The request failed: ${error instanceof Error ? error.message : error}. Is berth running?`
    output.append(element('p', { class: 'quiet' }, why))
  } finally {
    stop.hidden = true
  }
}

/**
 * Shows the body of a response: JSON in lines, other text as it comes, and of bytes only the first.
 *
 * @param {HTMLElement} shown
 * @param {Response} response
 */
async function readInto(shown, response) {
  if (response.body === null) return
  let text = ''
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value
    shown.textContent = text.slice(0, SHOWN)
    if (text.length < SHOWN) continue
    shown.append('\n… the rest is not shown')
    await reader.cancel()
    return
  }
  if (!/\bjson\b/.test(response.headers.get('content-type') ?? '')) return
  try {
    shown.textContent = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // What a fault has cut off is shown as it came.
  }
}

if (search.value !== '') found.textContent = entries.length === 1 ? '1 found' : `${entries.length} found`
