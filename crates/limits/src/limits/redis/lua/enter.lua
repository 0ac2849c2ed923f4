-- Requests that waited at the same time, each with a place at a provider with limits: checked and
-- taken in one step, or not. KEYS: the hashes of the providers from 2 on, then those of the users.
-- ARGV: 1, 2 see head.lua, then a request each (ENTRY), ordered by provider, key and session: the
-- number of the provider's hash in KEYS, the provider, its limits as one number, the request, its
-- note if there is none yet; then the provider's limits. Gives {'ok', 1 or 0 each} or {'gone'}.
--include head
local ids = { '' }
for i = 3, #ARGV do ids[i - 1] = string.sub(ARGV[i], 18, 33) end
-- The empty field is the fence (gone.lua).
local found = call('HMGET', KEYS[1], unpack(ids))
if not found[1] then return { 'gone' } end
--include limits
--include moves
--include blocked
--include room
local answers = { 'ok' }
for i = 3, #ARGV do
  local _, pid, mark, request, note, after = struct.unpack('<Bddc16Hc0', ARGV[i])
  local noted_before, limits = found[i - 1], { struct.unpack('<' .. string.rep('d', ENDS), ARGV[i], after) }
  local o = held_of(noted_before or note)
  -- A place that an unanswered call has taken does not stand in the way of its own request.
  local is_blocked = o.at ~= pid and blocked(provider(pid), o.member, limits, 0)
  if not is_blocked then
    if not noted_before and o.uid ~= 0 then
      -- It was admitted while Redis was away, and is not registered yet: it counts from here on.
      add_request(o)
      count_pair(o, 0, 0, o.low, o.high)
    end
    leave_provider(o)
    enter_provider(o, pid)
    local sc = provider(pid)
    local r = record(sc, 'p')
    r.limits, r.room = mark, room_of(r, limits, 0)
    sc.changed.p = true
    call('HSET', KEYS[1], request, note_of(o))
  end
  keep_all()
  users, providers = {}, {}
  answers[i - 1] = is_blocked and 0 or 1
end
return answers
