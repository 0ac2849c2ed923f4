-- The least room below limits that begin after a place, its check (of a list of checks) and what
-- counts there. Where sums are beyond the doubles, no room is left for others to use.
local function room_of(r, limits, from, checks)
  if r.high then return -FOREVER, 0, 0 end
  local least, check, against, sums = FOREVER, 0, 0, SUMS[limits[from + FIXED]]
  for i = 1, PERIODS do
    local sum = held(r, sums[i])
    local room = limits[from + i] - sum
    if room < least then least, check, against = room, checks and checks[i], sum end
  end
  return least, check, against
end
