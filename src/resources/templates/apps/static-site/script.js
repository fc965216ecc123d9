// The page is whole without this file. It adds a button that swaps light and dark and keeps the choice.

const root = document.documentElement
const button = document.querySelector('#theme')
const system = matchMedia('(prefers-color-scheme: dark)')

// Storage throws where the visitor has switched it off: the choice then lasts as long as the page.
const storage = {
  read() {
    try {
      return localStorage.getItem('theme')
    } catch {
      return null
    }
  },
  write(theme) {
    try {
      localStorage.setItem('theme', theme)
    } catch {}
  },
}

const current = () => root.dataset.theme ?? (system.matches ? 'dark' : 'light')

function label() {
  const next = current() === 'dark' ? 'light' : 'dark'
  button.textContent = next === 'dark' ? 'Dark' : 'Light'
  button.setAttribute('aria-label', `Switch to ${next} colours`)
}

const kept = storage.read()
if (kept === 'light' || kept === 'dark') root.dataset.theme = kept

button.addEventListener('click', () => {
  root.dataset.theme = current() === 'dark' ? 'light' : 'dark'
  storage.write(root.dataset.theme)
  label()
})
system.addEventListener('change', label)
label()
button.hidden = false
