/** A poll as the API answers it and the page shows it: both sides import this type. */
export interface PollView {
  question: string
  options: { id: number; label: string; votes: number }[]
  /** The option that the asking voter chose; null for none. */
  chosen: number | null
}

const MAX_VOTERS = 10_000

/** A question with one vote for each voter, kept in memory. */
export class Poll {
  readonly #question: string
  readonly #labels: readonly string[]
  /** Voter → option. */
  readonly #votes = new Map<string, number>()

  constructor(question: string, labels: readonly string[]) {
    this.#question = question
    this.#labels = labels
  }

  /** How it stands, for this voter. */
  view(voter: string | null): PollView {
    const votes = this.#labels.map(() => 0)
    for (const option of this.#votes.values()) votes[option] = (votes[option] ?? 0) + 1
    return {
      question: this.#question,
      options: this.#labels.map((label, id) => ({ id, label, votes: votes[id] ?? 0 })),
      chosen: voter === null ? null : (this.#votes.get(voter) ?? null),
    }
  }

  /** Counts a vote in place of the voter's earlier one. False where there is no such option or too many voted. */
  vote(voter: string, option: number): boolean {
    if (this.#labels[option] === undefined) return false
    if (!this.#votes.has(voter) && this.#votes.size >= MAX_VOTERS) return false
    this.#votes.set(voter, option)
    return true
  }
}
