-- A request's place at a provider with limits: checked and taken in one step. KEYS: 2 the
-- provider's hash, 3 the user's. ARGV: 3 numbers: provider, then its nine limits, and these as one
-- number; 4 request, 5 the request's note if there is none yet. Gives {'ok'}, {'blocked'} or
-- {'gone'}. Without a user here (it is on another server), most requests need only the head of the
-- provider's record, as in admit.lua.
--include head
--include gone
local N = { struct.unpack('<' .. string.rep('d', 11), ARGV[3]) }
local note = call('HGET', KEYS[1], ARGV[4])
local _, _, started, uid, _, low, high = struct.unpack('<ddddddd', ARGV[5])
if started > NOW then started = NOW end
if not note and uid == 0 and high == 0 and started >= MINUTE * 60000 then
  local member = string.sub(ARGV[5], 57)
  local p = call('HMGET', KEYS[2], 'p', member)
  if p[1] and p[2] then
    local minute, spent, reserved, next, room, _, _, limits = struct.unpack('<dddddddd', p[1])
    if minute == MINUTE and next > NOW and limits == N[11] and spent + reserved < room and reserved + low < 4503599627370496 then
      local runs, requests = struct.unpack('<dd', p[2])
      call('HSET', KEYS[2], 'p', struct.pack('<ddd', MINUTE, spent, reserved + low) .. string.sub(p[1], 25),
        member, struct.pack('<dd', runs + 1, requests + 1) .. string.sub(p[2], 17))
      call('HSET', KEYS[1], ARGV[4], struct.pack('<ddd', 0, N[1], started) .. string.sub(ARGV[5], 25))
      return { 'ok' }
    end
  end
end
--include record
--include refresh
--include rpm
--include sessions
--include rpm_rare
--include moves
--include blocked
--include room
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
  if o.uid == 0 then
    local sc = provider(N[1])
    local r = record(sc, 'p')
    r.limits, r.room = N[11], room_of(r, N, 1, N[8] == 1 and 16 or 14)
    sc.changed.p = true
  end
  call('HSET', KEYS[1], ARGV[4], note_of(o))
end
keep_all()
return { is_blocked and 'blocked' or 'ok' }
