-- Adds the session at hand to what is written of its user.
if is_new_session then
  set[count + 1], set[count + 2] = member, pack(TAILED, runs, requests, served, begun, ended, cost_low, cost_high, score, asks)
  count, is_new_session = count + 2, false
end
