-- The least room below limits that begin after a place, its check (of a key) and what counts there.
-- Where sums are beyond the doubles, no room is left for others to use.
local function room_of(r, limits, at, day)
  if r.high then return -FOREVER, 0, 0 end
  local least, check, against = FOREVER, 0, 0
  for i, pair in ipairs({ 10, 12, day, 18, 20 }) do
    local sum = held(r, pair)
    local room = limits[at + i] - sum
    if room < least then least, check, against = room, i == 1 and 1 or 2 * i + 2, sum end
  end
  return least, check, against
end
