/** Scalar's bundle for browsers, imported as the path of its file. */
declare module '*/standalone.js' {
  const path: string
  export default path
}
