-- Requests that waited at the same time, each with a place at a provider with limits: checked and
-- taken in one step, or not. KEYS: the hashes of the providers from 2 on, then those of the users
-- here, which only the full way uses. ARGV: 1, 2 see head.lua, then a request each (ENTRY), ordered
-- by provider, key and session: the number of the provider's hash in KEYS, the provider, its limits
-- as one number, the request, its note if there is none yet; then the provider's nine limits. Gives
-- {'ok', 1 or 0 each} or {'gone'}. Without a user here (it is on another server), most requests need
-- only the head of the provider's record, as in admit.lua; all others go the full way
-- (enter_full.lua).
--include head
local ENTRY = '<Bddc16Hc0'
local ids = { '' }
for i = 3, #ARGV do ids[i - 1] = string.sub(ARGV[i], 18, 33) end
-- The empty field is the fence (gone.lua).
local found = call('HMGET', KEYS[1], unpack(ids))
if not found[1] then return { 'gone' } end
local answers, notes, noted = { 'ok' }, {}, 0
local KEYS, ARGV = KEYS, ARGV
--include heads
-- Made when it is needed.
local full

for i = 3, #ARGV do
  local at, pid, mark, request, note, after = unpacked(ENTRY, ARGV[i])
  local _, _, started, uid, _, low, high = unpacked('<ddddddd', note)
  if started > NOW then started = NOW end
  local is_placed
  if not found[i - 1] and uid == 0 and high == 0 and started >= MINUTE * 60000 then
    local wanted, of = KEYS[at], string.sub(note, 57)
    --include load_place
    if has_place and p_next > NOW and p_limits == mark and p_spent + p_reserved < p_room and p_reserved + low < BASE then
      p_reserved, p_runs, p_requests, is_new_place, is_placed = p_reserved + low, p_runs + 1, p_requests + 1, true, true
      notes[noted + 1], notes[noted + 2] = request, pack('<ddd', 0, pid, started) .. string.sub(note, 25)
      noted = noted + 2
    end
  end
  if not is_placed then
    --include save_place
    if not full then
      --include enter_full
    end
    is_placed = full(pid, mark, request, found[i - 1], note, { unpacked('<ddddddddd', ARGV[i], after) })
  end
  answers[i - 1] = is_placed and 1 or 0
end
--include save_place
if noted > 0 then call('HSET', KEYS[1], unpack(notes, 1, noted)) end
return answers
