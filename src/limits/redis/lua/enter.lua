-- A request's place at a provider with limits: checked and taken in one step. KEYS: 2 the
-- provider's hash, 3 the user's. ARGV: 3 numbers: provider, then its nine limits; 4 request, 5 the
-- request's note if there is none yet. Gives {'ok'}, {'blocked'} or {'gone'}.
--include head
--include gone
--include record
--include refresh
--include rpm
--include sessions
--include rpm_rare
--include moves
--include blocked
local N = { struct.unpack('<' .. string.rep('d', 10), ARGV[3]) }
local note = call('HGET', KEYS[1], ARGV[4])
local o = held_of(note or ARGV[5])
-- A place that an unanswered call has taken does not stand in the way of its own request.
local is_blocked = o.at ~= N[1] and blocked(provider(N[1]), o.member, N, 2)
if not is_blocked then
  if not note and o.uid ~= 0 then
    -- It was admitted while Redis was away, and is not registered yet: it counts from here on.
    local sc = user(o.uid)
    enter(sc, o.member, o.started)
    count_pair(o, 0, 0, o.low, o.high)
    if o.started > NOW - SLOT_TTL then o.slot = rpm_insert(window(sc), o.started) end
  end
  leave_provider(o)
  enter_provider(o, N[1])
  call('HSET', KEYS[1], ARGV[4], note_of(o))
end
keep_all()
return { is_blocked and 'blocked' or 'ok' }
