/** Files whose text becomes a part of the executable. */
declare module '*.txt' {
  const text: string
  export default text
}

declare module '*/npm-modules.js' {
  const text: string
  export default text
}

declare module '*/yarn-relay.js' {
  const text: string
  export default text
}

declare module '*/find-program.js' {
  const text: string
  export default text
}

declare module '*/fill-go-cache.js' {
  const text: string
  export default text
}
