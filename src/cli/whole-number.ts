import { InvalidArgumentError } from 'commander'

/** Reads the value of an option that counts something, from 1. @throws InvalidArgumentError for anything else */
export function wholeNumber(given: string): number {
  if (/^[1-9]\d{0,8}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a whole number from 1.')
}
