"""AdamW: PyTorch's own where it can do it, and a plain one where types are mixed.

PyTorch's AdamW wants parameters, gradients and states of one type. `MixedAdamW` computes in f32 whatever
they are stored in, with the operations of `torch.optim.adam._single_tensor_adam` in their order, so that
where all is f32 its numbers are those of `torch.optim.AdamW(foreach=False, fused=False)` to the last bit.
"""

import torch


def make_optimizer(model, arguments):
    """The optimizer for the model's parameters as the flags describe it."""
    parameters = list(model.parameters())
    settings = dict(lr=arguments.lr, betas=arguments.betas, eps=arguments.eps, weight_decay=arguments.weight_decay)
    state_dtype = state_type(parameters[0].dtype, arguments)
    if arguments.master_weights or state_dtype != parameters[0].dtype:
        return MixedAdamW(parameters, **settings, state_dtype=state_dtype, master_weights=arguments.master_weights)
    return torch.optim.AdamW(
        parameters, **settings, fused=arguments.adamw == "fused", foreach=arguments.adamw == "foreach")


def state_type(parameter_dtype, arguments):
    """As asked for; else f32 beside a master copy, else the parameters' own type."""
    if arguments.state_dtype:
        return {"f32": torch.float32, "bf16": torch.bfloat16}[arguments.state_dtype]
    return torch.float32 if arguments.master_weights else parameter_dtype


class MixedAdamW:
    """AdamW in f32 over parameters and states of any type, one parameter after the other.

    With master weights the f32 copy is what is trained, and the parameter is its rounding. States that are
    not f32 are widened, updated and rounded back; the step itself uses them before rounding.
    """

    def __init__(self, parameters, *, lr, betas, eps, weight_decay, state_dtype, master_weights):
        self.parameters, self.lr, self.betas, self.eps, self.weight_decay = parameters, lr, betas, eps, weight_decay
        self.state_dtype, self.master_weights = state_dtype, master_weights
        self.states = None

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.zero_()

    @torch.no_grad()
    def step(self):
        # Made by the first step, as PyTorch does.
        if self.states is None:
            self.states = [self.new_state(parameter) for parameter in self.parameters]
        for parameter, state in zip(self.parameters, self.states, strict=True):
            self.update(parameter, state)

    def new_state(self, parameter):
        def zeros():
            return torch.zeros_like(parameter, dtype=self.state_dtype)

        master = parameter.detach().to(torch.float32, copy=True) if self.master_weights else None
        return {"step": torch.tensor(0.0), "exp_avg": zeros(), "exp_avg_sq": zeros(), "master": master}

    def update(self, parameter, state):
        # `float()` gives the tensor itself where it is f32 already, and `copy_` to itself does nothing.
        wide = parameter.detach().float() if state["master"] is None else state["master"]
        grad = parameter.grad.float()
        exp_avg, exp_avg_sq = state["exp_avg"].float(), state["exp_avg_sq"].float()
        (beta1, beta2), step = self.betas, state["step"]
        step += 1
        if self.weight_decay != 0:
            wide.mul_(1 - self.lr * self.weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        del grad
        count = step.item()
        step_size = self.lr / (1 - beta1 ** count)
        bias_correction2_sqrt = (1 - beta2 ** count) ** 0.5
        denominator = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(self.eps)
        wide.addcdiv_(exp_avg, denominator, value=-step_size)
        parameter.copy_(wide)
        state["exp_avg"].copy_(exp_avg)
        state["exp_avg_sq"].copy_(exp_avg_sq)
