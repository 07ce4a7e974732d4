// Given to opencode by ostler for one run: tells which conversation each prompt goes to, and nothing else.
// Whatever goes wrong here is no matter of the person who uses it.
import { appendFileSync } from "node:fs"

const file = new URL("conversation", import.meta.url)

export const Ostler = async ({ client }) => ({
  "chat.message": async ({ sessionID }) => {
    try {
      const found = await client.session.get({ path: { id: sessionID } })
      // A subagent's conversation hangs below the one that is asked for.
      if (found.data.parentID) return
      appendFileSync(file, JSON.stringify({ pid: process.pid, id: sessionID }) + "\n")
    } catch {}
  },
})
