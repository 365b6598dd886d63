/// How long to wait for a second answer where the first one left out what it should speak of; divided by the speed-up.
package func secondAnswerDelay(policy: Policy) -> Delay {
    max(Rhythm.suspected.divided(by: policy.speedup), shortestDelay)
}
