import { expect, test } from 'bun:test'
import { toCredits, toUnits } from '../../../src/resources/accounts/credits.ts'

test('credits have at most nine decimals, and none is lost on the way back', () => {
  for (const units of [1, 2, 2_000, 3_599_999, 3_600_000, 7_200_001]) {
    expect(String(toCredits(units)).replace(/^\d+\.?/, '').length).toBeLessThanOrEqual(9)
    expect(toUnits(toCredits(units))).toBe(units)
  }
  expect(toCredits(2_000)).toBe(0.000555556)
})
