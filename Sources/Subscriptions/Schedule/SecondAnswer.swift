/// Returns the wait for a second answer if the first one omitted data it should contain; divided by the speedup.
package func secondAnswerDelay(policy: Policy) -> Delay {
    max(PollingIntervals.suspected.divided(by: policy.speedup), shortestDelay)
}
