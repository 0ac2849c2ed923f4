-- Which limit of a provider keeps a request away: 'limit', 'cap', or nil. After 'limit' come the
-- places (1 to 5) of the limits that what is spent reaches without what is reserved. The provider's
-- nine limits begin at a place of a list of numbers.
local function blocked(sc, member, limits, at)
  local r = record(sc, 'p')
  local day = limits[at + 6] == 1 and 16 or 14
  if day == 16 and begin_day(r, sc.buckets, limits[at + 7], limits[at + 8]) then sc.changed.p = true end
  local reached
  for i, pair in ipairs({ 10, 12, day, 18, 20 }) do
    local limit = limits[at + i - 1]
    if held(r, pair) >= limit then
      reached = (reached or 'limit') .. (held(r, pair) - reserved(r, pair) >= limit and i or '')
    end
  end
  if reached then return reached end
  local cap = limits[at + 5]
  if cap == 0 then return nil end
  trim(sc)
  if call('ZCARD', sc.z) >= cap and not session(sc, member) then return 'cap' end
end
