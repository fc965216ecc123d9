import { describe, expect, test } from 'bun:test'
import css from '../../src/http/pages/tokens.css' with { type: 'text' }

/** The colours of both schemes by name. */
const colors = new Map(
  [...css.matchAll(/^ {2}--color-([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);$/gm)].map(
    ([, name = '', light = '', dark = '']) => [name, { light, dark }],
  ),
)

/** Returns the relative luminance of a colour (WCAG 2.2). */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Returns the contrast of two colours (WCAG 2.2). */
function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

const SURFACES = ['page', 'surface', 'sunken', 'raised', 'hover']
const STATES = ['running', 'sleeping', 'failed', 'waiting']

/** Pairs of text and what it is on. */
const TEXTS: readonly (readonly [string, string])[] = [
  ...['text', 'muted', 'accent', 'accent-hover', 'danger', 'danger-hover', ...STATES].flatMap((text) =>
    SURFACES.map((surface) => [text, surface] as const),
  ),
  ...['accent', 'danger', ...STATES, 'added', 'removed'].flatMap((name) => [
    [name, `${name}-soft`] as const,
    ['text', `${name}-soft`] as const,
    ['muted', `${name}-soft`] as const,
  ]),
  ...['keyword', 'name', 'string', 'number', 'comment'].flatMap((name) =>
    ['surface', 'sunken'].map((surface) => [`code-${name}`, surface] as const),
  ),
  ...['accent', 'accent-hover'].map((name) => ['on-accent', name] as const),
  ...['danger', 'danger-hover'].map((name) => ['on-danger', name] as const),
]

const LINES = ['page', 'surface', 'sunken', 'raised'].map((surface) => ['control', surface] as const)

describe.each(['light', 'dark'] as const)('the %s colours', (scheme) => {
  const of = (name: string): string => colors.get(name)?.[scheme] ?? expect.unreachable(name)

  test.each([
    ['every text has a contrast of 4.5:1 to what it is on', TEXTS, 4.5],
    ['the lines around controls have a contrast of 3:1', LINES, 3],
  ] as const)('%s', (_name, pairs, least) => {
    const low = pairs.flatMap(([one, other]) => {
      const found = contrast(of(one), of(other))
      return found < least ? [`${one} on ${other}: ${found.toFixed(2)}`] : []
    })
    expect(low).toEqual([])
  })
})
