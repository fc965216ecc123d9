/** Compares two versions by their numbers: 3.9 is before 3.10, and 3.13.0rc1 before 3.13.0. */
export function byVersion(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)]
  for (let index = 0; index < Math.max(left.numbers.length, right.numbers.length); index += 1) {
    const difference = (left.numbers[index] ?? 0) - (right.numbers[index] ?? 0)
    if (difference !== 0) return difference
  }
  if (left.rest === right.rest) return 0
  if (left.rest === '' || right.rest === '') return left.rest === '' ? 1 : -1
  return left.rest < right.rest ? -1 : 1
}

/**
 * Returns the version that a wish means: the same, else the newest that begins with it. `latest` and `lts` mean the newest.
 *
 * @param versions names of versions, such as `v20.11.0` or `cpython-3.12.1-linux`
 */
export function pickVersion(versions: readonly string[], wish: string): string | null {
  if (versions.includes(wish)) return wish
  const plain = wish.replace(/^v(?=\d)/, '')
  const fits = versions.filter((version) => {
    const name = version.replace(/^v(?=\d)/, '')
    return (
      plain === 'latest' ||
      plain === 'lts' ||
      name === plain ||
      name.startsWith(`${plain}.`) ||
      name.startsWith(`${plain}-`)
    )
  })
  return fits.sort(byVersion).at(-1) ?? null
}

/** Splits a version into its numbers and what follows them, such as `rc1`. */
function partsOf(version: string): { numbers: number[]; rest: string } {
  const [, numbers = '', rest = ''] = /^\D*([\d.]*)(.*)$/.exec(version) ?? []
  return { numbers: numbers.split('.').filter(Boolean).map(Number), rest }
}
