-- Adds the session at hand to what is written of its provider.
if is_new_place then
  p_set[p_count + 1], p_set[p_count + 2] = p_member, pack(HEAD, p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score)
  p_count, is_new_place = p_count + 2, false
end
