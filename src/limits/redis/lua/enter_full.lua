-- The full way of a request that enters a provider (see enter.lua). It writes what it changed at its
-- end, so that other requests of the call may go either way.
--include record
--include refresh
--include rpm
--include sessions
--include rpm_rare
--include moves
--include blocked
--include room
full = function(pid, mark, request, noted_before, note, limits)
  local o = held_of(noted_before or note)
  -- A place that an unanswered call has taken does not stand in the way of its own request.
  local is_blocked = o.at ~= pid and blocked(provider(pid), o.member, limits, 1)
  if not is_blocked then
    if not noted_before and o.uid ~= 0 then
      -- It was admitted while Redis was away, and is not registered yet: it counts from here on.
      local sc = user(o.uid)
      enter(sc, o.member, o.started)
      count_pair(o, 0, 0, o.low, o.high)
      if o.started > NOW - SLOT_TTL then o.slot = rpm_insert(window(sc), o.started) end
    end
    leave_provider(o)
    enter_provider(o, pid)
    local sc = provider(pid)
    local r = record(sc, 'p')
    r.limits, r.room = mark, room_of(r, limits, 0, limits[7] == 1 and 16 or 14)
    sc.changed.p = true
    call('HSET', KEYS[1], request, note_of(o))
  end
  keep_all()
  users, providers = {}, {}
  return not is_blocked
end
