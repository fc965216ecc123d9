import { expect, test } from 'bun:test'
import { TRANSITIONS } from '../../src/hosting/app-responder.ts'

const STATES = ['idle', 'starting', 'up', 'restarting', 'down'] as const

/** The states that follow from what happens, in the order of the table. */
const row = (event: keyof typeof TRANSITIONS) => {
  const next: Partial<Record<(typeof STATES)[number], string>> = TRANSITIONS[event]
  return STATES.map((state) => next[state] ?? state)
}

test('an app of any state is up when it responds, and down when it has ended', () => {
  expect(row('responded')).toEqual(STATES.map(() => 'up'))
  expect(row('ended')).toEqual(STATES.map(() => 'down'))
})

test('a bring-up changes nothing for a version that responds, nor does its failure', () => {
  for (const event of ['begun', 'failed'] as const)
    expect(row(event)).toEqual([
      expect.any(String),
      expect.any(String),
      'up',
      'restarting',
      expect.any(String),
    ])
  // A version that cannot run beside the one before leaves the app up, and requests wait.
  expect(row('launched')).toEqual(['starting', 'starting', 'restarting', 'restarting', 'starting'])
})
