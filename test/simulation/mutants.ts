/**
 * By what each mutant is found.
 *
 * `worlds`: in worlds of that weather, seed by seed. `interleavings`: in every interleaving of that small pool.
 * `directed`: in one interleaving told step by step. `publication`, `silence`, `idle deaths`, `known`, `pace`: by a
 * scene of that name.
 * `write`: only in a state of the table made for it, in which the clause alone refuses the write. That is all there is
 * for clauses which another clause, or the order of things, covers in whatever the pool does by itself: a second net.
 */
export type Killer =
  | { readonly by: "worlds"; readonly weather: string; readonly harm: string; readonly mostSeeds: number }
  | { readonly by: "interleavings"; readonly pool: "creators" | "expiry" | "landing"; readonly harm: string }
  | { readonly by: "directed"; readonly harm: string }
  | { readonly by: "publication" | "silence" | "idle deaths" | "known" | "pace" | "write" };

const world = (weather: string, harm: string, mostSeeds = 60): Killer => ({
  by: "worlds",
  weather,
  harm,
  mostSeeds,
});

/** By the rule that is broken. */
export const ruleKillers: Readonly<Record<string, Killer>> = {
  "a holder extends its lease": world("freezing", "taken from its holder"),
  "a holder renews a sandbox that nobody else renewed": world("no cron", "died of age under its holder"),
  "acquiring raises the fence": world("storm", "taken without a new fence"),
  "handing over raises the fence": world("storm", "taken without a new fence"),
  "taking over raises the fence": {
    by: "interleavings",
    pool: "expiry",
    harm: "taken without a new fence",
  },
  "claiming raises the fence": world("storm", "taken without a new fence"),
  "expiring and draining raise the fence": world("storm", "taken without a new fence"),
  "abandoning raises the fence": world("storm", "taken without a new fence"),
  "a refusal after a lost answer is looked into": { by: "publication" },
  "only our own mark makes a refused write ours": world("storm", "a fence given twice"),
  "a publication is known by its sandbox, whoever has it since": { by: "publication" },
  "a published worker that another has is not ours": { by: "publication" },
  "an ambiguous creation keeps its slot": world("storm", "more sandboxes than slots"),
  "an unproved sandbox is gone before its slot is free": world(
    "stubborn sandboxes",
    "more sandboxes than slots",
  ),
  "no creation starts late in its claim": world("freezing", "more sandboxes than slots"),
  "the provider is listed again before a slot of unknown content is emptied": world(
    "storm",
    "more sandboxes than slots",
  ),
  "without that list the slot stays as it is": world("bad provider", "more sandboxes than slots"),
  "a slot whose sandbox could not be killed stays as it is": world(
    "stubborn sandboxes",
    "more sandboxes than slots",
  ),
  "a sandbox carries its claim's generation": world("storm", "killed under its holder"),
  "the sweep renews workers": { by: "silence" },
  "the provider is listed before the table is read": world("freezing", "killed under its holder"),
  "a sandbox is known by its generation": { by: "known" },
  "a sandbox of a slot in creation is kept": { by: "known" },
  "a sandbox that no slot knows is killed": { by: "silence" },
  "a sandbox of a later life is not killed": { by: "directed", harm: "killed under its holder" },
  "only a recorded answer is told": world("freezing", "two answers for one key"),
  "workers are renewed so early that the provider may be away for minutes": world(
    "provider away",
    "a worker that is wanted died of age",
  ),
  "an extension without an answer is tried again soon": world("table away", "taken from its holder"),
  "a search outlasts a table that does not answer": world(
    "throttled table",
    "a batch gave up before its time",
  ),
  "a worker that can't be reached is killed before its slot is free": world(
    "edge away",
    "more sandboxes than slots",
  ),
  "a broken worker is not given out again": world(
    "unreachable workers",
    "a broken worker is given out again",
  ),
  "a free worker that the list lacks is asked for": { by: "idle deaths" },
  "a free worker that is said to be gone leaves its slot": world(
    "workers die together",
    "a batch was not served, though nothing failed",
  ),
  "what the list shows gone is gone, whatever kills say": world(
    "kills without effect",
    "a slot whose sandbox is gone is not free",
  ),
  "a worker that is said to be gone is killed all the same": world(
    "untrue provider",
    "more sandboxes than slots",
  ),
  "a claim lasts until nothing can land any more": world(
    "late landings",
    "a sandbox lands where its slot was given away",
  ),
  "the pace believes no clock that is far ahead": { by: "pace" },
  "no clock that is ahead settles a run that lives on": world(
    "wrong clocks",
    "what was told is not in the totals",
  ),
  "a chunk has no more time than its worker": world(
    "chunks longer than a life",
    "died of age under its holder",
  ),
  "a handler acquires workers of its own version": world("deploys", "a worker of another version"),
  "free workers of another version are drained": world("deploys", "a worker of an old version stays"),
  "a batch under a key is counted once its answer is recorded": world(
    "freezing",
    "totals say more than was told",
  ),
  "an entry that is written again is the same entry": world("storm", "totals say more than was told"),
};

/** By verb and clause; the others are found at the write only. */
export const clauseKillers: Readonly<Record<string, Killer>> = {
  "acquire: #state = :ready": world("storm", "taken from its holder"),
  "claim: (attribute_not_exists(#state) OR #state = :empty)": {
    by: "interleavings",
    pool: "creators",
    harm: "more sandboxes than slots",
  },
  "admit creation: (attribute_not_exists(#nextCreateAtMs) OR #nextCreateAtMs <= :nowMs OR #nextCreateAtMs = :tooFarMs)":
    world("lost answers", "created too fast"),
  "release ready: #fence = :fence": world("lost answers", "taken from its holder"),
  "begin batch: attribute_not_exists(#fence)": world("storm", "two answers for one key"),
  "begin batch again: (#state <> :answered OR #recordUntilS <= :nowS)": world(
    "freezing",
    "an answer was lost",
  ),
};
