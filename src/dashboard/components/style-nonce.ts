/**
 * Gives every style element that is made from now on the nonce that the page's policy asks for (CSP, nonce-source). The
 * terminal's emulator makes some, and can be told of no nonce.
 */
export function allowStyles(nonce: string): void {
  const create = Document.prototype.createElement
  document.createElement = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    const element = create.call(document, tag, options)
    if (element instanceof HTMLStyleElement) element.nonce = nonce
    return element
  }
}
