/** Whether the keyboard is Apple's, which has Command where others have Control. */
const isApple = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform)

/** Reports whether keys send a form with a field of several lines, in which Enter alone begins a new line. */
export const isSubmit = ({ key, ctrlKey, metaKey }: KeyboardEvent): boolean =>
  key === 'Enter' && (ctrlKey || metaKey)

/** Returns what a button's title says of the keys that do the same. */
export const submitKeysTitle = (): string => (isApple() ? 'Command+Enter' : 'Ctrl+Enter')

/** The keys that send a form, in its button. Screen readers hear them by the button's title. */
export const SubmitKeys = () => (
  <span class="submit-keys" aria-hidden="true">
    {isApple() ? '⌘' : 'Ctrl'} ↵
  </span>
)
